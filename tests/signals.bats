#!/usr/bin/env bats
# Signals to the recorder, to the program, and to both, as a terminal sends
# them; and deaths by signal, which the recorder passes on as its own.

load helpers

# Start a command in a session of its own, out of reach of the tests; its
# group is in $group when the file it makes, $1, is there.
start() {
	local made=$1
	shift
	# Background commands of a shell ignore SIGINT: perl undoes that.
	# shellcheck disable=SC2016
	setsid -w perl -e '$SIG{INT} = $SIG{QUIT} = "DEFAULT"; exec @ARGV' \
		"$@" >rec.out 2>rec.err </dev/null &
	job=$!
	for _ in $(seq 200); do
		[ -s "$made" ] && break
		sleep 0.05
	done
	[ -s "$made" ] || fail "it did not start: $(cat rec.err)"
	group=$(ps -o pgid= -p "$(cat "$made")" | tr -d ' ')
	[ "$group" -gt 1 ] && [ "$group" != "$(ps -o pgid= -p $$ | tr -d ' ')" ]
}

# ended STATUS: the job has ended with it, soon.
ended() {
	local got=0
	for _ in $(seq 200); do
		kill -0 "$job" 2>/dev/null || break
		sleep 0.05
	done
	wait "$job" || got=$?
	[ $got = "$1" ] || fail "status $got, not $1: $(cat rec.err)"
}

@test "Ctrl-C ends the program; the trace is complete" {
	# shellcheck disable=SC2016
	start pid trace-record -o t sh -c 'echo $$ >pid; while :; do sleep 0.05; done'
	kill -INT -- "-$group"
	ended 130
	[ -z "$(cat rec.err)" ]
	expect 0 trace-verify t
	replays SIGINT
	trace-dump --header t | jq -e '.complete and .signal == "SIGINT"'
}

# The program, which computes, dies of it; its trace is whole and replays.
ends_by_ctrl_c() {
	sleep 0.2
	kill -INT -- "-$group"
	ended 130
	[ -z "$(cat rec.err)" ]
	expect 0 trace-verify t
	trace-dump --header t | jq -e '.complete and .signal == "SIGINT"'
	replays SIGINT
}

@test "Ctrl-C during a computation" {
	start pid trace-record -o t perl -e 'open F, ">", "pid"; print F $$;
		close F; 1 while 1'
	ends_by_ctrl_c
}

@test "Ctrl-C during a computation of a program that handles it" {
	# dash does, with -c.
	# shellcheck disable=SC2016
	start pid trace-record -o t dash -c 'echo $$ >pid; while :; do :; done'
	ends_by_ctrl_c
}

@test "a program that handles Ctrl-C goes on" {
	# shellcheck disable=SC2016
	start pid trace-record -o t sh -c 'trap "echo caught; n=1" INT
		echo $$ >pid; while [ -z "$n" ]; do sleep 0.05; done; exit 9'
	kill -INT -- "-$group"
	ended 9
	[ "$(cat rec.out)" = caught ]
	expect 0 trace-verify t
	replays 9
	cmp rec.out rep.out
}

@test "a program that ignores Ctrl-C and Ctrl-\\ does not feel them" {
	# shellcheck disable=SC2016
	start pid trace-record -o t sh -c 'trap "" INT QUIT; echo $$ >pid
		while [ ! -e go ]; do sleep 0.05; done; echo end'
	kill -INT -- "-$group"
	kill -QUIT -- "-$group"
	sleep 0.2
	kill -INT -- "-$group"
	touch go
	ended 0
	[ "$(cat rec.out)" = end ]
	expect 0 trace-verify t
	replays 0
}

@test "SIGTERM and SIGHUP to the recorder are passed on to the program" {
	for s in TERM HUP; do
		rm -rf t pid
		# shellcheck disable=SC2016
		start pid trace-record -o t sh -c 'echo $$ >pid
			while :; do sleep 0.05; done'
		kill -$s "$(ps -o ppid= -p "$(cat pid)" | tr -d ' ')"
		ended "$(status_of SIG$s)"
		expect 0 trace-verify t
		replays SIG$s
	done
}

@test "SIGTERM to the recorder is the program's to handle" {
	# shellcheck disable=SC2016
	start pid trace-record -o t sh -c 'trap "echo term; exit 4" TERM
		echo $$ >pid; while :; do sleep 0.05; done'
	kill -TERM "$(ps -o ppid= -p "$(cat pid)" | tr -d ' ')"
	ended 4
	[ "$(cat rec.out)" = term ]
	replays 4
	cmp rec.out rep.out
}

# Who runs the program that has written its process id.
recorder() { ps -o ppid= -p "$(cat pid)" | tr -d ' '; }

@test "SIGTERM to the recorder of a program that ignores it: a second one ends it" {
	# shellcheck disable=SC2016
	start pid trace-record -o t sh -c 'trap "" TERM; echo $$ >pid
		while :; do sleep 0.05; done'
	recorder=$(recorder)
	kill -TERM "$recorder"
	sleep 0.5
	kill -0 "$recorder" || fail 'one was enough'
	kill -TERM "$recorder"
	ended "$(status_of SIGKILL)"
	expect 0 trace-verify t
	replays SIGKILL
	trace-dump --header t | jq -e '.complete and .signal == "SIGKILL"'
}

@test "SIGTERM to the recorder of a program that ignores it: it ends in time" {
	# shellcheck disable=SC2016
	start pid trace-record -o t sh -c 'trap "" TERM; echo $$ >pid
		sleep 100'
	kill -TERM "$(recorder)"
	ended "$(status_of SIGKILL)"
	expect 0 trace-verify t
	replays SIGKILL
}

@test "SIGTERM to the recorder when the first process has ended" {
	# shellcheck disable=SC2016
	start pid trace-record -o t sh -c '{ trap "echo term; exit 5" TERM
		sleep 0.3; sh -c "echo \$PPID" >pid
		while :; do sleep 0.05; done; } & exit 3'
	kill -TERM "$group" # the recorder leads it
	ended 3
	[ "$(cat rec.out)" = term ]
	expect 0 trace-verify t
	replays 3
}

# A program for the terminal that counts what reaches it.
counts() {
	cat >counts <<-'EOF'
	#!/usr/bin/perl
	$| = 1;
	$SIG{INT} = sub { $n++ };
	print "re", "ady\n";
	while (!-e "go") { select undef, undef, undef, 0.02 }
	print "had $n\n";
	EOF
	chmod +x counts
}

at_terminal() {
	timeout -k 5 100 setsid -w /usr/bin/python3 \
		"$BATS_TEST_DIRNAME/terminal.py" "$@"
}

@test "at a terminal: Ctrl-C reaches the program once" {
	counts
	at_terminal 'type:trace-record -o t ./counts' wait:ready \
		key:C sleep:0.5 key:C sleep:0.5 key:C sleep:0.5 key:Z \
		'wait:Stopped' 'type:touch go' 'type:fg' 'wait:had 3'
	expect 0 trace-verify t
	replays 0
	[ "$(tail -n 1 rep.out)" = 'had 3' ]
}

@test "at a terminal: stopped, continued in the background, and ended there" {
	counts
	at_terminal 'type:trace-record -o t ./counts' wait:ready \
		key:Z wait:Stopped 'type:bg' sleep:0.5 'type:touch go' \
		'wait:had' 'type:wait; echo all is over' 'wait:all is over'
	expect 0 trace-verify t
	replays 0
}

@test "at a terminal: Ctrl-C ends the program" {
	at_terminal 'type:trace-record -o t sleep 100; echo status $?' \
		sleep:2 key:C 'type:echo sta''tus after' 'wait:status after'
	expect 0 trace-verify t
	replays SIGINT
}

@test "signals that are ignored when recording starts are ignored inside" {
	trap '' INT USR1
	# shellcheck disable=SC2016
	expect 0 trace-record -o t sh -c 'kill -INT $$; kill -USR1 $$; echo on'
	trap - INT USR1
	[ "$output" = on ]
	replays 0
}

@test "the recorder dies of the program's signal, without a core file" {
	ulimit -c unlimited
	for s in SIGHUP SIGINT SIGQUIT SIGABRT SIGKILL SIGUSR1 SIGSEGV SIGPIPE \
		SIGALRM SIGTERM; do
		rm -rf t
		# A shell cannot tell a signal from an exit status above 128.
		# shellcheck disable=SC2016
		got=$(perl -e 'system { $ARGV[0] } @ARGV; print $? & 127' \
			trace-record -o t perl -e "kill '$s', \$\$; sleep 9")
		[ "$got" = "$(kill -l "${s#SIG}")" ] || fail "$s: $got"
		expect 0 trace-verify t
		replays "$s"
	done
}

@test "exit statuses above 128 are exits" {
	got=$(perl -e 'system { $ARGV[0] } @ARGV; print $?' \
		trace-record -o t sh -c 'exit 139')
	[ "$got" = $((139 << 8)) ]
	replays 139
}

@test "a program stopped by a terminal's signal is stopped, and goes on" {
	# shellcheck disable=SC2016
	start pid trace-record -o t perl -e 'open F, ">", "pid"; print F $$; close F;
		$n++ while !-e "go"; select undef, undef, undef, 0.01; exit 6'
	kill -STOP "$(cat pid)"
	for _ in $(seq 100); do
		grep -q '^State:.*[tT]' "/proc/$(cat pid)/status" && break
		sleep 0.02
	done
	touch go
	kill -CONT "$(cat pid)"
	ended 6
	expect 0 trace-verify t
	replays 6
}
