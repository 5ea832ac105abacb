package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestHierarchies(t *testing.T) {
	const (
		hybrid = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" +
			"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
			"39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n" +
			"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
		one = "25 30 0:23 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	)
	for name, c := range map[string]struct {
		self, mounts string
		want         []string
	}{
		"all of v2": {"0::/user.slice/user-1000.slice/session-2.scope\n", one,
			[]string{"v2 [] /sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope"}},
		"v1 and v2 beside each other": {"9:name=systemd:/\n8:pids:/\n4:memory:/jobs/7\n0::/\n", hybrid,
			[]string{"v1 [pids] /sys/fs/cgroup/pids", "v1 [memory] /sys/fs/cgroup/memory/jobs/7", "v2 [] /sys/fs/cgroup/unified"}},
		"controllers that share a hierarchy": {"3:pids,memory:/a\n", "1 2 0:3 / /cg/both rw - cgroup cgroup rw,memory,pids\n",
			[]string{"v1 [pids memory] /cg/both/a"}},
		"a container that sees the host's paths": {"0::/docker/abc/inner\n", "25 30 0:23 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			[]string{"v2 [] /sys/fs/cgroup/inner"}},
		"a container's own namespace":  {"0::/\n", one, []string{"v2 [] /sys/fs/cgroup"}},
		"outside of the namespace":     {"0::/../other\n", one, nil},
		"outside of the mount":         {"0::/docker/abcd\n", "25 30 0:23 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n", nil},
		"a mount of another container": {"0::/\n", "25 30 0:23 /../abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n", nil},
		"two mounts":                   {"0::/a\n", one + "26 30 0:23 / /mnt/with\\040space rw - cgroup2 cgroup rw\n", []string{"v2 [] /sys/fs/cgroup/a", "v2 [] /mnt/with space/a"}},
		"colons and commas in names":   {"0::/a:b,c\n", one, []string{"v2 [] /sys/fs/cgroup/a:b,c"}},
		"not mounted":                  {"0::/\n4:memory:/\n", "25 30 0:23 / /tmp rw - tmpfs tmpfs rw\n", nil},
		"cut short":                    {"0:\n\nnonsense", "25 30 - cgroup2\n- - -\n", nil},
	} {
		var got []string
		for _, h := range hierarchies([]byte(c.self), []byte(c.mounts)) {
			version := "v1"
			if h.v2 {
				version = "v2"
			}
			got = append(got, fmt.Sprintf("%s %v %s", version, h.controllers, h.own))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestLowest(t *testing.T) {
	dir := t.TempDir()
	for file, content := range map[string]string{
		"pids.max": "100\n", "a/pids.max": "max\n", "a/b/pids.max": "500\n", "a/b/c/pids.max": "20\n",
		"a/b/memory.limit_in_bytes": "9223372036854771712\n", "a/memory.limit_in_bytes": "",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n, ok := lowest(filepath.Join(dir, "a/b"), dir, "pids.max"); !ok || n != 100 {
		t.Errorf("pids.max: %d, %v", n, ok)
	}
	if n, ok := lowest(filepath.Join(dir, "a/b"), filepath.Join(dir, "a"), "pids.max"); !ok || n != 500 {
		t.Errorf("pids.max up to the mount: %d, %v", n, ok)
	}
	if n, ok := lowest(filepath.Join(dir, "a/b"), dir, "memory.limit_in_bytes"); ok {
		t.Errorf("no limit of memory is taken for %d", n)
	}
}

func TestWords(t *testing.T) {
	for n, want := range map[int64]string{7: "7 tasks", 999: "999 tasks", 4096: "4,096 tasks", 1234567: "1,234,567 tasks"} {
		if got := taskWords(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	for n, want := range map[int64]string{512 << 20: "memory 512 MiB", 1 << 30: "memory 1.0 GiB", 19<<30 - 1: "memory 18.9 GiB"} {
		if got := memoryWords(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}
