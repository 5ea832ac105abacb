package git

// commitScript makes the commit of Clone.Commit. Its argument is base, the message comes on standard input.
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
