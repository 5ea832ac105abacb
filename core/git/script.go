package git

import (
	"fmt"
	"strings"
)

// refused is the exit status of a script that gives a reason, the last line of its error output.
const refused = 90

// prelude is what all scripts share: POSIX sh with the GNU tools. Arguments are positional parameters, never part of the
// text; the first is the clone's configuration. Results go to descriptor 3, everything else is error output.
func prelude() string {
	return fmt.Sprintf(preludeScript, strings.Join(options(cloned()), " "), refused)
}

// cloned are the settings in a clone. Safety comes from the cell; these let git work in a clone that was tampered with.
// None of them needs quoting. Our own repository was checked on its way in, so objects from it need no check.
func cloned() []string {
	return append(protected(), "core.fsyncMethod=batch", "core.logAllRefUpdates=true", "transfer.fsckObjects=false", "merge.conflictStyle=merge", "core.bare=false")
}

// preludeScript is a format: the options of git and the status for a refusal are put in.
const preludeScript = `set -eu
exec 3>&1 1>&2
config=$1; shift
g() { git --git-dir="$PWD/.git" --work-tree="$PWD" %s "$@"; }
refuse() { printf 'refused: %%s\n' "$1"; exit %d; }
lost() {
	refuse 'its .git is not the folder that it was, so nothing in it can be committed. You get a new .git; your files are kept in it under refs/autoagent/rescue and the old .git in .autoagent: take from there what you need and leave .git to git'
}

# loosen: the agent may have taken permissions away from what is its own; "git add" would leave it out with a mere warning
loosen() {
	find . -type d ! -perm -u=rwx -exec chmod u+rwx {} \; \
		-o -path './.git/objects/*' -type f ! -perm -u=r -exec chmod u+r {} + \
		-o ! -path './.git/objects/*' -type f ! -perm -u=rw -exec chmod u+rw {} + || :
}

# unplug: git waits for ever at a FIFO that it reads, and cannot add one; no link in a .git leads to one or elsewhere
unplug() {
	find . ! -type d ! -type f ! -type l -exec rm -f {} + \
		-o -path '*/.git/*' ! -path '*/.git/hooks/*' -type l -exec rm -f {} + || :
}

# plain: .git is a folder of its own and nothing in it leads elsewhere; nothing in the clone is in git's way
plain() {
	loosen
	unplug
	for f in .git .git/objects .git/refs; do
		if [ -L "$f" ] || [ ! -d "$f" ]; then return 1; fi
	done
	[ ! -L .git/HEAD ] && [ -f .git/HEAD ] && [ ! -e .git/commondir ] && [ ! -L .git/commondir ]
}

# scrub: locks of a git that died, and whatever changes how git works, go; the configuration is ours
scrub() {
	find .git -path .git/objects -prune -o -name '*.lock' -exec rm -rf {} + &&
	rm -rf .git/config .git/config.worktree .git/shallow .git/info/attributes .git/info/grafts .git/info/sparse-checkout \
		.git/objects/info/alternates .git/objects/info/http-alternates &&
	if [ -L .git/info ] || [ ! -d .git/info ]; then rm -rf .git/info && mkdir .git/info; fi &&
	if [ -L .git/info/exclude ] || [ ! -f .git/info/exclude ]; then rm -rf .git/info/exclude; fi &&
	if [ "$(tail -n 1 .git/info/exclude 2>/dev/null)" != /.autoagent/ ]; then
		printf '\n/.autoagent/\n' >>.git/info/exclude
	fi &&
	printf '%%s' "$config" >.git/config
}

# sound: the index can be read and hides no file from "add"; else it is made anew
sound() {
	if [ ! -f .git/index ] || ! g ls-files >/dev/null || g ls-files -v | grep -q '^[a-zS]'; then
		rm -rf .git/index && g read-tree HEAD
	fi
}

# add: the index holds what the tree holds, without .autoagent
add() {
	g add -A && g rm -rqf --cached --ignore-unmatch -- .autoagent
}

# forget: what a half-done merge, pick or rebase left
forget() {
	for f in MERGE_HEAD MERGE_MSG MERGE_MODE AUTO_MERGE SQUASH_MSG CHERRY_PICK_HEAD REVERT_HEAD \
		rebase-merge rebase-apply sequencer autoagent-conflicts; do
		rm -rf ".git/$f"
	done
	rm -rf .git/BISECT_*
}

# conflicted: files that the last merge left to be solved; the list is ours too, because "git add" empties git's
conflicted() {
	g diff --name-only --diff-filter=U -z
	if [ -f .git/autoagent-conflicts ]; then cat .git/autoagent-conflicts; fi
}

# unsolved: those that still hold a marker
unsolved() {
	conflicted | xargs -0 -r grep -lsE -D skip -d skip '^(<<<<<<<|>>>>>>>) ' -- | sort -u | head -n 5 || :
}
`

const statusScript = `
plain || lost
n=$(g status --porcelain -z --untracked-files=normal | head -c 1 | wc -c)
printf '%s %s\n' "$n" "$(g rev-parse --verify --quiet HEAD || :)" >&3
`

const bundleScript = `
base=$1 commit=$2
plain || lost
scrub
g update-ref refs/autoagent/out "$commit"
g bundle create --quiet --version=2 - refs/autoagent/out "^$base" >&3
`
