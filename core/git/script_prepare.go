package git

// prepareScript does the work of Clone.Prepare. Its arguments are the repository to copy from, base and the mode.
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
	rm -rf .git/index && g read-tree HEAD && unnest && add && tree=$(g write-tree) && work=$(g rev-parse HEAD) &&
	if [ "$tree" != "$(g rev-parse 'HEAD^{tree}')" ]; then
		work=$(g commit-tree "$tree" -p HEAD -m 'Unfinished work, kept.')
	fi &&
	keep "$work" &&
	if g show-ref --quiet --verify refs/heads/main; then keep "$(g rev-parse refs/heads/main)"; fi
}

reset() {
	g reset --quiet --hard "$1" || { loosen && g reset --quiet --hard "$1"; }
}

# tidy: nothing but drafts and what is ignored stays besides the files of HEAD
tidy() {
	g clean --quiet -ffd -e /.autoagent/ || { loosen && g clean --quiet -ffd -e /.autoagent/; }
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
	tidy
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
			m=$(g rev-parse --verify --quiet --end-of-options "$m^{commit}") || continue # no commit: nothing to merge
			g merge-base --is-ancestor "$m" HEAD || parents="$parents -p $m"
		done <.git/MERGE_HEAD
	fi
	if [ "$tree" != "$(g rev-parse 'HEAD^{tree}')" ] || [ "$parents" != "-p $head" ]; then
		commit=$(g commit-tree "$tree" $parents -m 'Unfinished work.')
		g update-ref -m 'autoagent: unfinished work' HEAD "$commit" "$head"
	fi
	forget
}

# replant: a history that the agent began by itself is kept; its files become changes of what they most likely build on
replant() {
	rescue
	on=$(g merge-base refs/heads/main "$base") || on=$base
	forget
	g update-ref -m 'autoagent: back on main' HEAD "$on"
	rm -rf .git/index && g read-tree HEAD
}

merge() {
	if [ -e "$merging" ]; then # killed in the middle of a merge of ours: everything was committed before
		forget
		reset HEAD
		tidy
		rm -f "$merging"
	fi
	if [ -f .git/MERGE_HEAD ] && [ -n "$(unsolved)" ]; then
		if grep -qxF "$base" .git/MERGE_HEAD; then return 0; fi # the agent is at it
		rescue # an older merge, not solved: its tree is kept, the newer one is to be solved
		forget
		reset HEAD
	fi
	rm -rf .git/rebase-merge .git/rebase-apply
	if ! g merge-base HEAD "$base" >/dev/null; then
		replant
		if [ "$(g rev-parse HEAD)" = "$base" ]; then return 0; fi
	fi
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
