#!/usr/bin/env bats
# Thousands of interruptions inside computations, of which none may come at
# another place in the replay: each is recorded with a digest of the memory,
# the registers and the vector registers, and replay says where one differs.

load ../helpers

# points N PROGRAM...: record it with short turns and many seeds, replay each,
# until there have been N points.
points() {
	local want=$1 seen=0 seed=0 got
	shift
	while [ "$seen" -lt "$want" ]; do
		seed=$((seed + 1))
		rm -rf t
		got=0
		(in_session 120 trace-record --chaos --seed=$seed --slice=1 \
			--max-defer=1 -o t "$@" >rec.out 2>rec.err) || got=$?
		[ $got = 0 ] || fail "seed $seed: status $got" "$(cat rec.err)"
		(in_session 300 trace-replay t >rep.out 2>rep.err) ||
			fail "seed $seed: $(head -n 20 rep.err)"
		cmp rec.out rep.out
		got=$(trace-dump -f json -T async t >t.json &&
			grep -c '"type":"async"' t.json) || [ "$got" = 0 ]
		seen=$((seen + got))
		[ $seed -lt "$want" ] || fail "$seed recordings, $seen points"
	done
	echo "$seen points in $seed recordings"
}

@test "1000 points in loops of all kinds" {
	points 400 "$BUILD/workloads/async_loops"
	points 300 "$BUILD/workloads/async_loops-O0"
	points 300 "$BUILD/workloads/async_loops-O3"
}

@test "600 points in code made at run time" {
	points 600 "$BUILD/workloads/async_jit"
}

@test "200 points among threads that race" {
	points 200 "$BUILD/workloads/async_race"
}

@test "300 points in handlers that are interrupted themselves" {
	points 300 "$BUILD/workloads/async_nested"
}

@test "300 points in python3, with threads and a timer" {
	cat >p.py <<-'END'
		import signal, threading
		ticks = 0
		def tick(signo, frame):
		    global ticks
		    ticks += 1
		def work(n):
		    s, seen = 0, {}
		    for i in range(n):
		        s = (s * 31 + i) & 0xffffff
		        seen[s & 63] = seen.get(s & 63, 0) + 1
		    return s, sum(seen.values())
		signal.signal(signal.SIGALRM, tick)
		signal.setitimer(signal.ITIMER_REAL, 0.004, 0.004)
		out = []
		threads = [threading.Thread(target=lambda: out.append(work(150000)))
		           for _ in range(3)]
		for t in threads:
		    t.start()
		out.append(work(150000))
		for t in threads:
		    t.join()
		signal.setitimer(signal.ITIMER_REAL, 0)
		print(out, ticks > 0)
	END
	points 300 /usr/bin/python3 p.py
}

@test "200 points in perl and lua" {
	need perl lua5.4
	points 100 perl -e '
		my ($x, %h) = (1);
		for my $i (1 .. 1000000) { $x = ($x * 31 + $i) & 0xffffff;
			$h{$x & 31}++; }
		print "$x\n";'
	cat >l.lua <<-'END'
		local x, t = 1, {}
		for i = 1, 3000000 do
			x = (x * 31 + i) & 0xffffff
			t[x & 31] = (t[x & 31] or 0) + 1
		end
		print(x, t[1])
	END
	points 100 lua5.4 l.lua
}

@test "200 points in node, its compiler and its workers" {
	need node
	cat >n.js <<-'END'
		const { Worker, isMainThread } = require('worker_threads');
		let x = 1;
		function f(n) {
			for (let i = 0; i < n; i++)
				x = (x * 31 + i) & 0xffffff;
			return x;
		}
		if (isMainThread) {
			for (let i = 0; i < 2; i++)
				new Worker(__filename);
			console.log(f(3e7));
		} else {
			f(1e7);
		}
	END
	points 200 node n.js
}
