package git

import "context"

// Unmerged says whether any ref of the repository holds a commit that main does not. Documents of the work are no work.
func (r Repo) Unmerged(ctx context.Context, main string) (bool, error) {
	if err := valid(main); err != nil {
		return false, err
	}
	out, err := r.git(ctx, "rev-list", "--max-count=1", "--exclude="+DocsRef("*"), "--exclude="+CheckpointDocsRef("*", "*"), "--all", "--not", main)
	return out != "", err
}

// Holds says whether a ref of a person's repository holds the commit.
func Holds(ctx context.Context, path, commit string) (bool, error) {
	if err := valid(commit); err != nil {
		return false, err
	}
	p, err := openPerson(ctx, path)
	if err != nil || p == nil {
		return false, err
	}
	if there, err := p.has(ctx, "cat-file", "-e", commit+"^{commit}"); err != nil || !there {
		return false, err
	}
	out, err := p.git(ctx, "for-each-ref", "--count=1", "--contains", commit)
	return out != "", err
}
