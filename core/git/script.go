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

const preludeScript = `set -eu
exec 3>&1 1>&2
config=$1; shift
g() { git --git-dir="$PWD/.git" --work-tree="$PWD" %s "$@"; }
refuse() { printf 'refused: %%s\n' "$1"; exit %d; }

# plain: .git is a folder of its own and nothing in it leads elsewhere
plain() {
	chmod u+rwx .git .git/objects .git/refs 2>/dev/null || :
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

# loosen: the agent took permissions away from its own files
loosen() {
	find . -path ./.git -prune -o \( -type d ! -perm -u=rwx -o -type f ! -perm -u=r \) -exec chmod u+rwX {} \;
}

# sound: the index can be read and hides no file from "add"; else it is made anew
sound() {
	if [ ! -f .git/index ] || ! g ls-files >/dev/null || g ls-files -v | grep -q '^[a-zS]'; then
		rm -rf .git/index && g read-tree HEAD
	fi
}

# add: the index holds what the tree holds, without .autoagent
add() {
	{ g add -A || { loosen && g add -A; }; } && g rm -rqf --cached --ignore-unmatch -- .autoagent
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
plain || refuse 'its .git is not the folder that it was'
n=$(g status --porcelain -z --untracked-files=normal | head -c 1 | wc -c)
printf '%s %s\n' "$n" "$(g rev-parse --verify --quiet HEAD || :)" >&3
`

const bundleScript = `
base=$1 commit=$2
plain || refuse 'its .git is not the folder that it was'
scrub
g update-ref refs/autoagent/out "$commit"
g bundle create --quiet --version=2 - refs/autoagent/out "^$base" >&3
`

const commitScript = `
base=$1
plain || refuse 'its .git is not the folder that it was'
scrub
g rev-parse --verify --quiet 'HEAD^{tree}' >/dev/null || refuse 'HEAD names no commit'
g cat-file -e "$base^{commit}" || refuse "it does not hold commit $base any more"
for f in rebase-merge rebase-apply; do
	if [ -e ".git/$f" ]; then refuse 'a rebase is unfinished: finish it or abort it'; fi
done
list=$(unsolved)
if [ -n "$list" ]; then refuse "conflict markers are left in: $list"; fi
list=$(g ls-files --others --exclude-standard | grep -E '/"?$' | head -n 5 || :)
if [ -n "$list" ]; then refuse "these folders are git repositories of their own, remove their .git: $list"; fi

sound
add
list=$(g diff-index --cached --raw --no-renames "$base" -- | grep -E '^:[0-7]{6} 160000 ' | grep -v '^:160000 ' | cut -f 2 | head -n 5 || :)
if [ -n "$list" ]; then refuse "these folders are git repositories of their own, remove their .git: $list"; fi
tree=$(g write-tree)

head=$(g rev-parse HEAD)
heads=$head
if [ -f .git/MERGE_HEAD ]; then
	while read -r m; do
		m=$(g rev-parse --verify --quiet --end-of-options "$m^{commit}") || refuse 'a pending merge names no commit'
		g merge-base --is-ancestor "$m" HEAD || heads="$heads $m"
	done <.git/MERGE_HEAD
fi
held=
for h in $heads; do
	if g merge-base --is-ancestor "$base" "$h"; then held=1; fi
done
if [ -z "$held" ]; then refuse "its work does not build on commit $base any more"; fi
# drafts that the agent committed must not come along in the history either
if [ -n "$(g rev-list -n 1 --full-history $heads "^$base" -- .autoagent)" ]; then heads=$base; fi

commit=$head
if [ "$heads" != "$head" ] || [ "$tree" != "$(g rev-parse 'HEAD^{tree}')" ]; then
	parents=
	for h in $heads; do parents="$parents -p $h"; done
	commit=$(g commit-tree "$tree" $parents -F -)
	g update-ref -m 'autoagent: commit' HEAD "$commit" "$head"
fi
forget
changed=1
if [ "$tree" = "$(g rev-parse "$base^{tree}")" ]; then changed=0; fi
printf '%s %s\n' "$commit" "$changed" >&3
`

const prepareScript = `
repo=$1 base=$2 mode=$3
preparing=.git/autoagent-preparing # holds while the tree is between two states of ours: nothing in it is anybody's work
merging=.git/autoagent-merging     # the same during a merge; all work is committed
anew=                              # set when HEAD was lost: on what the tree builds is unknown

# aside: a .git that cannot be used is kept where the agent finds it
aside() {
	if [ ! -e .git ] && [ ! -L .git ]; then return 0; fi
	rm -rf .autoagent/room && head -c 1048576 /dev/zero >.autoagent/room && rm .autoagent/room || return 1 # a full disk is not the clone's fault
	n=1
	while [ -e ".autoagent/git-$n" ] || [ -L ".autoagent/git-$n" ]; do n=$((n + 1)); done
	chmod u+rwx .git 2>/dev/null || :
	mv .git ".autoagent/git-$n"
}

# make: a new .git appears whole
make() {
	anew=1
	rm -rf .autoagent/git.new &&
	git init --quiet --bare --template= --initial-branch=main .autoagent/git.new &&
	if [ -z "$(find . -mindepth 1 -maxdepth 1 ! -name .autoagent ! -name .git -print -quit)" ]; then
		: >.autoagent/git.new/autoagent-preparing
	fi &&
	mv .autoagent/git.new .git && scrub
}

unborn() {
	! g rev-parse --verify --quiet HEAD >/dev/null && b=$(g symbolic-ref --quiet HEAD) && ! g show-ref --quiet --verify "$b"
}

usable() {
	plain && scrub && { g rev-parse --verify --quiet 'HEAD^{tree}' >/dev/null || unborn; } && g for-each-ref --count=1 >/dev/null
}

# get: base is here, copied and not linked, and HEAD is on a branch with a commit
get() {
	g fetch --quiet --no-tags --no-write-fetch-head --no-auto-maintenance --no-recurse-submodules --refmap= \
		--upload-pack='` + uploadPack + `' -- "$repo" "+$base:refs/autoagent/base" &&
	if unborn; then
		g symbolic-ref HEAD refs/heads/main &&
		{ g rev-parse --verify --quiet HEAD >/dev/null || { anew=1 && g update-ref refs/heads/main "$base"; }; } &&
		rm -rf .git/index && g read-tree HEAD
	fi
}

# keep: a commit that base does not hold gets a ref
keep() {
	if g merge-base --is-ancestor "$1" "$base"; then return 0; fi
	if [ -n "$(g for-each-ref --count=1 --contains "$1" refs/autoagent/rescue)" ]; then return 0; fi
	n=$(($(g for-each-ref refs/autoagent/rescue | wc -l) + 1))
	while g show-ref --quiet --verify "refs/autoagent/rescue/$n"; do n=$((n + 1)); done
	g update-ref "refs/autoagent/rescue/$n" "$1" ''
}

# unnest: of a repository inside, which no commit can hold, the files stay and the .git goes where the agent finds it
unnest() {
	g ls-files --others --exclude-standard -z | xargs -0 -r sh -c '
		for d; do
			case $d in */) ;; *) continue ;; esac
			n=1
			while [ -e ".autoagent/nested-$n" ] || [ -L ".autoagent/nested-$n" ]; do n=$((n + 1)); done
			mv -- "./$d.git" ".autoagent/nested-$n" || exit 255
		done' sh
}

# rescue: the tree and the branch are kept under refs. The index is made anew: only the tree counts.
rescue() {
	rm -rf .git/index && g read-tree HEAD && { unnest || { loosen && unnest; }; } && add && tree=$(g write-tree) && work=$(g rev-parse HEAD) &&
	if [ "$tree" != "$(g rev-parse 'HEAD^{tree}')" ]; then
		work=$(g commit-tree "$tree" -p HEAD -m 'Unfinished work, kept.')
	fi &&
	keep "$work" &&
	if g show-ref --quiet --verify refs/heads/main; then keep "$(g rev-parse refs/heads/main)"; fi
}

reset() {
	g reset --quiet --hard "$1" || { loosen && g reset --quiet --hard "$1"; }
}

fresh() {
	if [ ! -e "$preparing" ]; then
		rescue || { aside && make && get && rescue; }
		: >"$preparing"
	fi
	rm -rf "$merging"
	forget
	g symbolic-ref HEAD refs/heads/main
	reset "$base"
	# what the former tree ignored and base does not
	if [ -n "$(g ls-files --others --exclude-standard | head -c 1)" ]; then
		rescue
		reset "$base"
	fi
	g clean --quiet -ffd -e /.autoagent/
	rm -f "$preparing"
}

# settle: unfinished work, and a merge that was solved, become a commit of the branch
settle() {
	unnest
	sound
	add
	tree=$(g write-tree)
	head=$(g rev-parse HEAD)
	parents="-p $head"
	if [ -f .git/MERGE_HEAD ]; then
		while read -r m; do
			g merge-base --is-ancestor "$m" HEAD || parents="$parents -p $m"
		done <.git/MERGE_HEAD
	fi
	if [ "$tree" != "$(g rev-parse 'HEAD^{tree}')" ] || [ "$parents" != "-p $head" ]; then
		commit=$(g commit-tree "$tree" $parents -m 'Unfinished work.')
		g update-ref -m 'autoagent: unfinished work' HEAD "$commit" "$head"
	fi
	forget
}

merge() {
	if [ -e "$merging" ]; then # killed in the middle of a merge of ours: everything was committed before
		forget
		reset HEAD
		g clean --quiet -ffd -e /.autoagent/
		rm -f "$merging"
	fi
	if [ -f .git/MERGE_HEAD ] && [ -n "$(unsolved)" ]; then
		if grep -qxF "$base" .git/MERGE_HEAD; then return 0; fi # the agent is at it
		rescue # an older merge, not solved: its tree is kept, the newer one is to be solved
		forget
		reset HEAD
	fi
	rm -rf .git/rebase-merge .git/rebase-apply
	settle
	: >"$merging"
	if ! g merge --quiet --no-edit --no-verify --no-stat --no-autostash -m 'Merge main.' "$base"; then
		[ -f .git/MERGE_HEAD ] || exit 1
		g diff --name-only --diff-filter=U -z >.git/autoagent-conflicts
	fi
	rm -f "$merging"
}

if [ -L .autoagent ] || { [ -e .autoagent ] && [ ! -d .autoagent ]; }; then mv .autoagent "autoagent-was-$$"; fi
mkdir -p .autoagent
chmod u+rwx .autoagent
usable || { aside && make; }
get || { aside && make && get; }
if [ -e "$preparing" ]; then mode=fresh; fi
if [ -e "$merging" ] && [ "$mode" = keep ]; then mode=merge; fi
if [ -n "$anew" ] && [ "$mode" = merge ]; then mode=fresh; fi # a merge would undo what others did since
case $mode in
fresh) fresh ;;
keep) ;;
merge)
	merge
	conflicted >&3
	;;
*) exit 64 ;;
esac
`
