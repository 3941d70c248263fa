#!/bin/sh
# Show the six tools at work, in words for somebody who sees them first.
#
# Everything happens in a temporary directory.  Every step is checked: the
# demo fails when a tool does not do what the text says.
set -eu
cd "$(dirname "$0")/.."
BUILD=$(cd "${BUILD:-build}" && pwd)
PATH=$BUILD/bin:$PATH
place=$(mktemp -d "${TMPDIR:-/tmp}/trace-demo.XXXXXX")
trap 'rm -rf "$place"' EXIT
trap 'exit 1' INT TERM HUP
XDG_DATA_HOME=$place/data XDG_CACHE_HOME=$place/cache
export XDG_DATA_HOME XDG_CACHE_HOME
mkdir "$place/here" "$place/elsewhere"
cd "$place/here"

bold='' normal=''
if [ -t 1 ]; then
	bold=$(printf '\033[1m') normal=$(printf '\033[0m')
fi
step=0

step() {
	step=$((step + 1))
	printf '\n%s%d. %s%s\n' "$bold" "$step" "$1" "$normal"
	shift
	[ $# = 0 ] || printf '   %s\n' "$@"
}

# run STATUS COMMAND: show it, run it by the shell, require its exit status.
run() {
	want=$1
	shift
	printf '\n   $ %s\n' "$*"
	got=0
	(eval "$*") >out 2>&1 || got=$?
	sed 's/^/   | /' out | head -n "${lines:-16}"
	total=$(wc -l <out)
	[ "$total" -le "${lines:-16}" ] || echo "   | ... ($total lines)"
	if [ $got != "$want" ]; then
		echo "demo: exit status $got, expected $want" >&2
		exit 1
	fi
	[ "$got" = 0 ] || echo "   (exit status $got)"
}

cat >dice <<'SCRIPT'
#!/bin/sh
# Roll 200 dice with the kernel's random numbers and fail on some days.
od -An -N200 -tu1 -v /dev/urandom | tr -s ' ' '\n' |
	awk 'NF { print $1 % 6 + 1 }' | sort | uniq -c
date '+rolled at %T.%N'
if [ $(($(od -An -N1 -tu1 /dev/urandom) % 2)) = 0 ]; then
	echo 'dice: the table fell over' >&2
	exit 3
fi
SCRIPT
chmod +x dice

step 'A program that never does the same thing twice' \
	'A small shell pipeline: eight processes, random numbers, the clock.' \
	'Sometimes it fails. We want to look at a failure.'
lines=30 run 0 'cat dice'

step 'Record it until it fails' \
	'trace-record runs the program as it is and passes its status on.' \
	'The program is not changed, and no privilege is needed.'
n=0
while trace-record -o run ./dice >out 2>err; do
	rm -rf run
	n=$((n + 1))
	[ $n -lt 60 ] || { echo 'demo: it never failed' >&2; exit 1; }
done
cat err >>out
printf '\n   $ while trace-record -o run ./dice; do rm -r run; done\n'
sed 's/^/   | /' out
echo "   (it failed at attempt $((n + 1)); the trace of that run is in ./run)"
cp out first

step 'Replay the failure' \
	'The same processes run again, with the same random numbers and the' \
	'same time of day, and fail in the same way. As often as you like.'
run 0 'trace-replay run'
grep -q 'identical' out
trace-replay -q run >again 2>&1
cmp first again
echo '   (output and exit status are those of the recorded run, to the byte)'

step 'Look inside' \
	'Every system call with its arguments, result and time; the processes.'
lines=12 run 0 'trace-dump -f text --tasks run'
lines=6 run 0 'trace-dump -f text -s openat run | tail -n 6'

step 'Ask questions' \
	'In a pipe every tool writes JSON Lines, so jq can ask anything:' \
	'here, the system calls that took most of the time.'
lines=6 run 0 "trace-dump --stats run | jq -r '
       .syscalls | sort_by(-.duration)[:5][] | [.name, .count, .duration] | @tsv'"

step 'Check it' \
	'Every byte of a trace has a checksum. Is this one whole?'
run 0 'trace-verify -f text run'
cp -r run damaged
chunk=$(find damaged/chunks -type f -name '0*' | head -n 1)
printf 'X' | dd of="$chunk" bs=1 seek=200 conv=notrunc 2>/dev/null
echo
echo '   And a copy in which one byte was changed?'
run 1 'trace-verify -f text damaged'

step 'Compare two runs' \
	'Two recordings of one command; trace-diff finds the first event in' \
	'which they part. For our dice that is a read of random numbers.'
trace-record -o one sh -c 'head -c 4 /dev/urandom | od -An -tx1' >/dev/null
trace-record -o two sh -c 'head -c 4 /dev/urandom | od -An -tx1' >/dev/null
run 1 'trace-diff -f text one two'

step 'Send it to somebody' \
	'One file, with every library that the programs used. The receiver' \
	'needs nothing of this machine but the tools and a like processor.'
run 0 'trace-pack -f text -o dice.trace run'
mv dice.trace "$place/elsewhere"
cd "$place/elsewhere"
rm -rf "$place/here"
run 0 'trace-pack -f text -x dice.trace'
run 0 'trace-replay run'
grep -q 'identical' out

printf '\n%sThat is all.%s The manual: man -l man/trace.7\n' "$bold" "$normal"
