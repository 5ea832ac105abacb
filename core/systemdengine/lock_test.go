package systemdengine

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// TestLock: one at a time, and who waits for too long hears for whom.
func TestLock(t *testing.T) {
	e := &Engine{Settings: units.Settings{Manager: units.User, UnitDir: t.TempDir()}}
	unlock, err := e.lockFor(context.Background(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.lockFor(context.Background(), 30*time.Millisecond)
	if usererr.CodeOf(err) != usererr.Later || !strings.Contains(err.Error(), fmt.Sprintf("process %d (", os.Getpid())) {
		t.Errorf("while it is held: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err = e.lockFor(ctx, time.Minute); err == nil {
		t.Error("it waits for nobody")
	}
	unlock()
	if unlock, err = e.lockFor(context.Background(), time.Second); err != nil {
		t.Fatal(err)
	}
	unlock()
}
