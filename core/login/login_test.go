package login

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/usererr"
)

const secret = "sk-ant-oat01-EXAMPLE-not-a-secret"

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "login.json")
	if _, err := Read(path); usererr.CodeOf(err) != usererr.Environment || !strings.Contains(err.Error(), "no login yet") {
		t.Error(err)
	}
	for _, f := range []File{{Kind: PlanToken, Plan: "max5", Secret: secret}, {Kind: APIKey, Secret: "sk-ant-api03-EXAMPLE"}} {
		ok(t, Write(path, f))
		st, err := os.Stat(path)
		ok(t, err)
		if dir, _ := os.Stat(filepath.Dir(path)); st.Mode().Perm() != 0o600 || dir.Mode().Perm() != 0o700 {
			t.Error(st.Mode(), dir.Mode())
		}
		got, err := Read(path)
		f.Version = 1
		if err != nil || got != f {
			t.Errorf("%v: version %d, kind %s, plan %s", err, got.Version, got.Kind, got.Plan)
		}
		if c := got.Credential(); c.Kind != f.Kind || c.Secret != f.Secret {
			t.Errorf("kind %s", c.Kind)
		}
	}
	entries, _ := os.ReadDir(filepath.Dir(path))
	if len(entries) != 1 {
		t.Errorf("there is %v", entries)
	}
}

// TestOthersCanRead: a login that anybody else can read or write is refused, and the hint says what to type.
func TestOthersCanRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "login.json")
	ok(t, Write(path, File{Kind: PlanToken, Secret: secret}))
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o644, 0o666, 0o620, 0o602, 0o610, 0o777} {
		ok(t, os.Chmod(path, mode))
		_, err := Read(path)
		var u *usererr.Error
		if u, _ = err.(*usererr.Error); u == nil || u.Code != usererr.Environment || u.Hint != "chmod 600 "+path || !strings.Contains(err.Error(), path) {
			t.Errorf("%o: %v", mode, err)
		}
	}
	for _, mode := range []os.FileMode{0o600, 0o400} {
		ok(t, os.Chmod(path, mode))
		if _, err := Read(path); err != nil {
			t.Errorf("%o: %v", mode, err)
		}
	}
	// A login that was open to others is closed again when it is written.
	ok(t, os.Chmod(path, 0o666))
	ok(t, Write(path, File{Kind: PlanToken, Secret: secret}))
	if _, err := Read(path); err != nil {
		t.Error(err)
	}
}

// TestDamagedLoginStaysUnsaid: no error shows what the file holds.
func TestDamagedLoginStaysUnsaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "login.json")
	for name, content := range map[string]string{
		"the token itself":    secret,
		"a token and newline": secret + "\n",
		"cut":                 `{"version":1,"kind":"plan-token","secret":"` + secret,
		"another kind":        `{"version":1,"kind":"` + secret + `","secret":"` + secret + `"}`,
		"a number":            `{"version":1,"kind":"plan-token","secret":123456789}`,
		"wrong type":          `{"version":"` + secret + `","kind":"plan-token","secret":"` + secret + `"}`,
		"a field too much":    `["` + secret + `"]`,
		"no secret":           `{"version":1,"kind":"plan-token","plan":"` + secret + `"}`,
		"empty":               "",
		"NULs":                strings.Repeat("\x00", 4096),
		"too big":             strings.Repeat(secret, 10_000),
	} {
		ok(t, os.WriteFile(path, []byte(content), 0o600))
		f, err := Read(path)
		if usererr.CodeOf(err) != usererr.Environment || f != (File{}) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		u := err.(*usererr.Error)
		if text := u.Error() + u.Hint; strings.Contains(text, "EXAMPLE") || strings.Contains(text, "123456789") || strings.Contains(text, "\x00") {
			t.Errorf("%s: %s", name, text)
		}
		if b, _ := os.ReadFile(path); string(b) != content {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func TestNoPlainFile(t *testing.T) {
	dir := t.TempDir()
	ok(t, Write(filepath.Join(dir, "real"), File{Kind: PlanToken, Secret: secret}))
	ok(t, os.Symlink("real", filepath.Join(dir, "link")))
	ok(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	for _, name := range []string{"link", "folder"} {
		if f, err := Read(filepath.Join(dir, name)); usererr.CodeOf(err) != usererr.Environment || f != (File{}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKind(t *testing.T) {
	for in, want := range map[string]string{
		"sk-ant-oat01-x": PlanToken, "sk-ant-api03-x": APIKey, "": "", "sk-ant-": "", "sk-proj-x": "", " sk-ant-oat01-x": "", "SK-ANT-OAT01-x": "",
	} {
		if got := Kind(in); got != want {
			t.Errorf("%q is %q", in, got)
		}
	}
}
