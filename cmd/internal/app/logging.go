package app

import (
	"errors"
	"log/slog"

	"gopkg.in/natefinch/lumberjack.v2"

	"example.com/AutoAgentProject/core/logline"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// An agent's log file is closed at 10 MB and kept under another name, beside the five before it.
const (
	logSize    = 10 // MB
	logBackups = 5
)

// logFile is a log file that rotates. It is opened at the first line.
func logFile(path string) *lumberjack.Logger {
	return &lumberjack.Logger{Filename: path, MaxSize: logSize, MaxBackups: logBackups}
}

// stderrLog is the log of a command that systemd starts: in the journal with MISSION=, unless id is empty, and with the
// name that its unit gives to SyslogIdentifier=. How the command ends badly is told there as well.
func (c *cli) stderrLog(name, id string) *slog.Logger {
	h := logline.Stderr(c.env.Stderr, name)
	if id != "" {
		h = h.WithAttrs([]slog.Attr{slog.String(logline.Mission, id)})
	}
	c.inJournal, _ = h.(*logline.Handler)
	return slog.New(h)
}

// failInJournal tells the journal how a program ended badly, as stderr would be told.
func failInJournal(h *logline.Handler, err error) {
	if err == nil || errors.Is(err, errQuiet) {
		return
	}
	hint := ""
	if u, ok := errors.AsType[*usererr.Error](err); ok {
		hint = u.Hint
	}
	slog.New(h).Error(err.Error(), "hint", hint, "exit", int(usererr.CodeOf(err)))
}

// journalCommand is the command that shows a mission's lines in the journal, for a mission of the systemd engine. Lines
// of a user manager's ticks are in the user's own journal. Missions of early versions name no manager: it is the user's.
func journalCommand(manager, id string) []string {
	argv := []string{"journalctl"}
	if units.Manager(manager) != units.System {
		argv = append(argv, "--user")
	}
	return append(argv, "MISSION="+id)
}
