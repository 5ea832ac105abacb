package git

import (
	"context"
	"fmt"
	"strings"

	"example.com/AutoAgentProject/core/usererr"
)

// ImportRepo brings what HEAD of a person's repository holds, with its history, and lets main begin with it. That
// repository is only read. Importing the same again changes nothing.
func (r Repo) ImportRepo(ctx context.Context, path string) (commit string, err error) {
	p, err := openPerson(ctx, path)
	if err != nil {
		return "", err
	}
	switch {
	case p == nil:
		return "", usererr.New(usererr.Usage, "give the folder of a git repository", "%s is no git repository", path)
	case p.Inside != "":
		return "", usererr.New(usererr.Usage, "start from "+p.Inside, "%s is only a part of a git repository", path)
	case p.Shallow:
		return "", usererr.New(usererr.Usage, "fetch the rest first: git fetch --unshallow", "%s is a shallow clone: a part of its history is missing", path)
	case p.Partial:
		return "", usererr.New(usererr.Usage, "start from a full clone", "%s is a partial clone: a part of its objects is missing", path)
	case p.Format != "sha1":
		return "", usererr.New(usererr.Usage, "start from a repository with SHA-1 ids", "%s uses %s object ids", path, p.Format)
	case p.Head == "":
		return "", usererr.New(usererr.Usage, "commit something there first", "%s has no commit yet", path)
	}
	held, err := hold(ctx, r.Dir)
	if err != nil {
		return "", fmt.Errorf("import %s: %w", path, err)
	}
	defer held.Close()
	c := r.call("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules",
		"--upload-pack="+uploadPack, "--", p.GitDir, p.Head)
	c.args = append(options(forgiving()), c.args...)
	c.held = held
	if _, err := c.run(ctx); err != nil {
		return "", usererr.Wrap(err, usererr.Failed, "git fsck in that repository tells more", "the history of %s cannot be taken over", path)
	}
	return r.begin(ctx, held, p.Head)
}

// forgiving lets an old history pass with the flaws that long-gone tools left in it. None of them matters to a checkout.
func forgiving() []string {
	var s []string
	for _, id := range strings.Fields(`badDate badDateOverflow badEmail badName badTimezone missingEmail missingNameBeforeEmail
		missingSpaceBeforeDate missingSpaceBeforeEmail multipleAuthors zeroPaddedDate zeroPaddedFilemode badFilemode
		gitmodulesParse extraHeaderEntry nulInCommit`) {
		s = append(s, "fetch.fsck."+id+"=ignore")
	}
	return s
}
