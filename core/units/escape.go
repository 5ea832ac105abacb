package units

import (
	"fmt"
	"strings"
)

// word writes s as one quoted word of a line that systemd splits into words: ExecStart= (behind its prefix : which turns
// off the meaning of $), ReadWritePaths=, RequiresMountsFor=, Environment=.
func word(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`).Replace(s) + `"`
}

// raw writes s as the whole value of a line that is not split: WorkingDirectory=, ListenDatagram=, Condition…=.
// Spaces and quotes mean themselves there, except at the ends.
func raw(s string) (string, error) {
	if strings.TrimSpace(s) != s || strings.HasSuffix(s, `\`) {
		return "", fmt.Errorf("%q cannot be the value of a line: its end would be lost", s)
	}
	return strings.ReplaceAll(s, "%", "%%"), nil
}
