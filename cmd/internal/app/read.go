package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/usererr"
)

// secretsOfHome are the places of a home folder that no agent may be shown, whatever is asked for.
func secretsOfHome() []string {
	return []string{
		".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/autoagent", ".config/git/credentials",
		".config/systemd", ".kube", ".docker", ".npmrc", ".yarnrc.yml", ".netrc", ".git-credentials", ".pypirc", ".cargo/credentials",
		".cargo/credentials.toml", ".m2/settings.xml", ".gradle/gradle.properties", ".claude", ".claude.json", ".terraform.d",
		".vault-token", ".password-store", ".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium",
		".bash_history", ".zsh_history",
	}
}

// secrets are what a probe tries to get at: the login, the operator's home and a few places in it.
func (c *cli) secrets(login string) []string {
	home := c.env.Getenv("HOME")
	if !filepath.IsAbs(home) {
		return []string{login}
	}
	out := []string{login, home}
	for _, s := range []string{".ssh", ".gnupg", ".aws", ".claude", ".config"} {
		out = append(out, filepath.Join(home, s))
	}
	return out
}

// secretsOfSystem are those of the machine. What is below /run, /proc, /sys and /dev belongs to processes.
func secretsOfSystem() []string {
	return []string{"/run", "/proc", "/sys", "/dev", "/boot", "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh", "/etc/ssl/private",
		"/etc/autoagent", "/etc/credstore", "/etc/credstore.encrypted", "/var/lib/systemd", "/var/spool", "/var/log"}
}

// readable checks what is asked for by --read and returns the real paths, each once: files and folders that neither hold
// nor lie in a secret or a mission's data.
func (c *cli) readable(root string, paths []string, login string) ([]string, error) {
	home := c.env.Getenv("HOME")
	secret := append(secretsOfSystem(), root, login)
	if filepath.IsAbs(home) {
		for _, s := range secretsOfHome() {
			secret = append(secret, filepath.Join(home, s))
		}
	}
	if dir, err := c.configDir(); err == nil {
		secret = append(secret, dir)
	}
	var out []string
	for _, p := range paths {
		if p == "~" || strings.HasPrefix(p, "~/") { // of a configuration, which no shell reads
			p = filepath.Join(home, p[1:])
		}
		abs, err := filepath.Abs(p)
		if err == nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
		if err != nil {
			return nil, usererr.Wrap(err, usererr.Usage, "name a file or folder that is there", "--read %s", p)
		}
		st, err := os.Stat(abs)
		if err != nil {
			return nil, usererr.Wrap(err, usererr.Usage, "", "--read %s", p)
		}
		if !st.IsDir() && !st.Mode().IsRegular() {
			return nil, usererr.New(usererr.Usage, "name a file or folder", "--read %s is neither file nor folder", p)
		}
		if strings.ContainsAny(abs, "\n\x00") {
			return nil, usererr.New(usererr.Usage, "give it another name", "--read: a path has a line break")
		}
		for _, s := range secret {
			if s != "" && (within(abs, s) || within(s, abs)) {
				return nil, usererr.New(usererr.Usage, "name the folder that is needed, and nothing above it", "--read %s would show %s to agents", p, s)
			}
		}
		if !slices.Contains(out, abs) {
			out = append(out, abs)
		}
	}
	return out, nil
}
