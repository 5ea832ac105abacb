package git

// commitScript makes the commit of Clone.Commit. Its argument is base, the message comes on standard input.
const commitScript = `
base=$1
plain || lost
# several: the lines of a list, as words of a sentence
several() { printf '%s\n' "$1" | sed '$!s/$/,/' | tr '\n' ' ' | sed 's/ $//'; }
scrub
g rev-parse --verify --quiet 'HEAD^{tree}' >/dev/null || refuse "HEAD names no commit. Your files stay and you are put back on the branch main: work on top of its commits"
g cat-file -e "$base^{commit}" || refuse "it does not hold commit $base any more, on which your work has to build. You get that commit again: keep it in the history of your branch"
for f in rebase-merge rebase-apply; do
	if [ -e ".git/$f" ]; then refuse 'a rebase is unfinished. It is given up where it stands: look at git log and at your files, put in order what is missing, and finish every rebase before you end'; fi
done
list=$(unsolved)
if [ -n "$list" ]; then refuse "conflict markers are left in: $(several "$list"). Make of each of these files what it should be, without any line that begins with <<<<<<<, ======= or >>>>>>>"; fi
list=$(g ls-files --others --exclude-standard | grep -E '/"?$' | head -n 5 || :)
if [ -n "$list" ]; then refuse "these folders are git repositories of their own, remove their .git: $(several "$list")"; fi

sound
add
list=$(g diff-index --cached --raw --no-renames "$base" -- | grep -E '^:[0-7]{6} 160000 ' | grep -v '^:160000 ' | cut -f 2 | head -n 5 || :)
if [ -n "$list" ]; then refuse "these folders are git repositories of their own, remove their .git: $(several "$list")"; fi
tree=$(g write-tree)

head=$(g rev-parse HEAD)
heads=$head
if [ -f .git/MERGE_HEAD ]; then
	while read -r m; do
		m=$(g rev-parse --verify --quiet --end-of-options "$m^{commit}") || refuse 'a pending merge names no commit: .git/MERGE_HEAD was written by hand or is damaged. It is removed; merge again if you need to'
		g merge-base --is-ancestor "$m" HEAD || heads="$heads $m"
	done <.git/MERGE_HEAD
fi
held=
for h in $heads; do
	if g merge-base --is-ancestor "$base" "$h"; then held=1; fi
done
if [ -z "$held" ]; then refuse "its work does not build on commit $base any more. Stay on a branch that holds this commit: begin no history of your own and do not reset or rebase to before it"; fi
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
