package git

import (
	"context"
	"strings"
)

// Modes are the files of a commit, by path: 100644, 100755, or 120000 for a link. A folder of another repository is none.
func (r Repo) Modes(ctx context.Context, commit string) (map[string]string, error) {
	if err := valid(commit); err != nil {
		return nil, err
	}
	out, err := r.call("ls-tree", "-r", "-z", "--full-tree", commit).run(ctx)
	if err != nil {
		return nil, err
	}
	modes := map[string]string{}
	for _, entry := range fields(out) {
		head, path, _ := strings.Cut(entry, "\t")
		if mode, kind, _ := strings.Cut(head, " "); strings.HasPrefix(kind, "blob ") {
			modes[path] = mode
		}
	}
	return modes, nil
}
