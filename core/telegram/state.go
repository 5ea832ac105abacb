package telegram

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

// State is poller.json of a bot: how far its updates were taken, and what of them is not done yet. One write holds both,
// so that nothing is confirmed to Telegram that is not kept here, and nothing is done twice.
type State struct {
	Version int      `json:"version"`
	Offset  int      `json:"offset"`         // the first update that was not taken
	Chat    int64    `json:"chat,omitempty"` // new id of a group that was upgraded
	From    int64    `json:"from,omitempty"` // the configured id that Chat replaces
	Actions []Action `json:"actions,omitempty"`
	Aborts  []Abortq `json:"aborts,omitempty"`
	Ignored int      `json:"ignored"` // updates of anybody else
	Last    Stranger `json:"last,omitzero"`
}

// Abortq is a question whether to abort a mission.
type Abortq struct {
	Mission string     `json:"mission"`
	Root    store.Root `json:"root"`
	Token   string     `json:"token"`
	Until   time.Time  `json:"until"`
}

// Stranger is who wrote last and is not the person: the id that doctor shows for pairing. Its words are not kept.
type Stranger struct {
	User int64     `json:"user"`
	Chat int64     `json:"chat"`
	At   time.Time `json:"at"`
}

const stateVersion = 1

// Folder is where a bot's files lie below the folder of all channels of a user.
func Folder(host, token string) string { return filepath.Join(host, "telegram-"+Hash(token)) }

// ReadState reads the state; without one it is empty. One that cannot be read is an error: guessing could do things twice.
func ReadState(dir string) (State, error) {
	s := State{Version: stateVersion}
	path := filepath.Join(dir, "poller.json")
	b, err := files.Read(path, 16<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err == nil && s.Version != stateVersion {
		err = fmt.Errorf("it has no version %d", stateVersion)
	}
	if err != nil {
		return State{}, usererr.Wrap(err, usererr.Unreadable, "move it away: then updates of the last day are read again", "%s cannot be read", path)
	}
	return s, nil
}

// Write keeps the state.
func (s State) Write(dir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := files.MakeDir(dir, 0o700); err != nil {
		return err
	}
	return files.Replace(filepath.Join(dir, "poller.json"), append(b, '\n'), 0o600)
}

// ErrTaken means that another poller of this host has the bot.
var ErrTaken = errors.New("another poller has it")

// Lock takes the one lock of a bot, or of another channel, on this host, whoever runs it: folder is the same for all
// users. The kernel gives it back when the process dies.
func Lock(folder, hash string) (unlock func(), err error) {
	path := filepath.Join(folder, "autoagent-poller-"+hash+".lock")
	// Made by whoever is first, readable by all: to lock it needs no more.
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if errors.Is(err, fs.ErrExist) {
		f, err = os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("lock of the poller: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrTaken
		}
		return nil, fmt.Errorf("lock of the poller: %w", err)
	}
	return func() { f.Close() }, nil
}

// LockFolder is where the locks of pollers lie: a folder that everybody can write.
func LockFolder() string {
	const shared = "/run/lock"
	if unix.Access(shared, unix.W_OK) == nil {
		return shared
	}
	return os.TempDir()
}
