package systemdengine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/units"
)

var exposureLine = regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+ [A-Z]+)`)

// Exposure is what systemd-analyze security says of a service as it is rendered, for example "4.8 OK": from 0, walled off, to
// 10, as exposed as can be. It looks at the unit alone and asks no manager. Most of what it misses in a unit of a tick is done
// around the agent program by its cell, which it does not know of.
func Exposure(ctx context.Context, service units.File) (string, error) {
	dir, err := os.MkdirTemp("", "autoagent-exposure-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, service.Name)
	if err := os.WriteFile(file, service.Text, 0o600); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "systemd-analyze", "security", "--offline=true", "--no-pager", file).CombinedOutput()
	found := exposureLine.FindSubmatch(out)
	if found == nil {
		return "", fmt.Errorf("systemd-analyze security says nothing of %s: %w: %s", service.Name, err, strings.TrimSpace(string(out)))
	}
	return string(found[1]), nil
}
