package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestBeneath: in a folder of somebody else nothing but plain files is read, and what is placed goes nowhere else.
func TestBeneath(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "f.md")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		make func(dir string) error
		want error // of ReadBeneath; nil: it reads "mine"
	}{
		"plain": {func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/a", 0o700), os.WriteFile(dir+"/a/f.md", []byte("mine"), 0o600))
		}, nil},
		"none": {func(string) error { return nil }, fs.ErrNotExist},
		"link": {func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/a", 0o700), os.Symlink(secret, dir+"/a/f.md"))
		}, ErrNotRegular},
		"link to folder": {func(dir string) error { return os.Symlink(outside, dir+"/a") }, ErrNotRegular},
		"file as folder": {func(dir string) error { return os.WriteFile(dir+"/a", nil, 0o600) }, ErrNotRegular},
		"pipe": {func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/a", 0o700), unix.Mkfifo(dir+"/a/f.md", 0o600))
		}, ErrNotRegular},
		"folder": {func(dir string) error { return os.MkdirAll(dir+"/a/f.md/x", 0o700) }, ErrNotRegular},
		"too big": {func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/a", 0o700), os.WriteFile(dir+"/a/f.md", []byte("mine!"), 0o600))
		}, ErrTooBig},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.make(dir); err != nil {
				t.Fatal(err)
			}
			got, err := ReadBeneath(dir, "a/f.md", 4)
			if !errors.Is(err, c.want) || c.want == nil && string(got) != "mine" {
				t.Errorf("%q, %v; want %v", got, err, c.want)
			}
			if err := PlaceBeneath(dir, "a/f.md", []byte("new!"), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := ReadBeneath(dir, "a/f.md", 4); string(got) != "new!" || err != nil {
				t.Errorf("placed %q, %v", got, err)
			}
		})
	}
	if b, err := os.ReadFile(secret); string(b) != "secret" || err != nil {
		t.Errorf("outside: %q, %v", b, err)
	}
	for _, rel := range []string{"../x", "/x", "a/../x", ""} {
		if _, err := ReadBeneath(outside, rel, 4); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v", rel, err)
		}
		if err := PlaceBeneath(outside, rel, nil, 0o600); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v", rel, err)
		}
	}
}
