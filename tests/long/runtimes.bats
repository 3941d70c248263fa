#!/usr/bin/env bats
# Programs in many languages, each with its runtime's own threads, signals and
# memory management.

load ../helpers

@test "python3: signals" {
	cat >p.py <<-'END'
		import os, signal, subprocess, sys, time
		seen = []
		signal.signal(signal.SIGUSR1, lambda s, f: seen.append("usr1"))
		signal.signal(signal.SIGCHLD, lambda s, f: seen.append("chld"))
		for _ in range(20):
		    os.kill(os.getpid(), signal.SIGUSR1)
		assert seen == ["usr1"] * 20, seen
		def late(s, f):
		    raise TimeoutError("late")
		signal.signal(signal.SIGALRM, late)
		signal.setitimer(signal.ITIMER_REAL, 0.02)
		try:
		    while True:
		        time.sleep(0.001)
		except TimeoutError as e:
		    print("caught", e)
		r, w = os.pipe()
		os.set_blocking(w, False)
		signal.set_wakeup_fd(w)
		p = subprocess.Popen(["sleep", "60"])
		p.send_signal(signal.SIGTERM)
		print("child", p.wait())
		print("wakeup", signal.SIGCHLD in os.read(r, 100))
		signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
		os.kill(os.getpid(), signal.SIGUSR2)
		print("waited for", signal.sigwait([signal.SIGUSR2]).name)
		signal.signal(signal.SIGTERM, signal.SIG_DFL)
		sys.stdout.flush()
		os.kill(os.getpid(), signal.SIGTERM)
	END
	varies=1 repeat 5 same SIGTERM /usr/bin/python3 ../p.py
}

@test "node: timers, promises, files, a child, code compiled at run time" {
	need node
	cat >n.js <<-'END'
		const fs = require('fs'), { execFileSync } = require('child_process');
		// Hot enough to be compiled, then deoptimised by another type.  The
		// calls to the system keep turns from ending inside the loops:
		// tests/workloads/async_loops.c is about that.
		function add(a, b) { return a + b; }
		let sum = 0;
		for (let i = 0; i < 3e6; i++) {
			sum = add(sum, i % 7);
			if (i % 1e5 === 0) fs.existsSync('/');
		}
		console.log(sum, add('a', 'b'), add(0.5, 1));
		const f = new Function('n', 'r', 'for (let i = 0; i < n; i++) ' +
			'r = (r * 33 + i) >>> 0; return r;');
		let r = 0;
		for (let i = 0; i < 20; i++) {
			r = f(1e5, r);
			fs.existsSync('/');
		}
		console.log(r, /(\d+)-(\d+)/.exec('x 12-34')[2]);
		fs.writeFileSync('f', JSON.stringify({ a: [1, 2, 3] }));
		console.log(execFileSync('cat', ['f']).toString());
		setTimeout(() => console.log('timer'), 5);
		fs.promises.readFile('f').then(b => console.log(b.length));
		(async () => {
			for await (const d of await fs.promises.opendir('.'))
				console.log(d.name);
			process.exitCode = 4;
		})();
		process.on('exit', c => console.log('exit', c, Math.random()));
	END
	varies=1 repeat 20 same 4 node ../n.js
}

@test "java: hello" {
	need java javac
	cat >Hello.java <<-'END'
		public class Hello {
		    public static void main(String[] a) {
		        System.out.println("hello " + System.nanoTime());
		        System.exit(3);
		    }
		}
	END
	javac Hello.java
	limit=120 varies=1 repeat 5 same 3 java -cp .. Hello
}

@test "java: threads, synchronized, executors, garbage collection" {
	need java javac
	cat >Threads.java <<-'END'
		import java.util.*;
		import java.util.concurrent.*;
		public class Threads {
		    static int count;
		    static synchronized void add() { count++; }
		    public static void main(String[] a) throws Exception {
		        Thread[] t = new Thread[4];
		        for (int i = 0; i < t.length; i++) {
		            t[i] = new Thread(() -> {
		                for (int j = 0; j < 5000; j++) add();
		            });
		            t[i].start();
		        }
		        for (Thread x : t) x.join();
		        ExecutorService pool = Executors.newFixedThreadPool(3);
		        List<Future<Integer>> f = new ArrayList<>();
		        for (int i = 0; i < 20; i++) {
		            final int n = i;
		            f.add(pool.submit(() -> {
		                List<byte[]> l = new ArrayList<>();
		                for (int j = 0; j < 50; j++) l.add(new byte[10000]);
		                return l.size() + n;
		            }));
		        }
		        int sum = 0;
		        for (Future<Integer> x : f) sum += x.get();
		        pool.shutdown();
		        System.gc();
		        System.out.println(count + " " + sum + " " +
		            pool.awaitTermination(10, TimeUnit.SECONDS));
		    }
		}
	END
	javac Threads.java
	limit=120 repeat 20 same 0 java -Xmx64m -cp .. Threads
	[ "$(cat rep.out)" = '20000 1190 true' ]
}

@test "go: goroutines, channels, timers, signals, network" {
	need go
	cat >g.go <<-'END'
		package main

		import (
			"fmt"
			"io"
			"net"
			"os"
			"os/exec"
			"os/signal"
			"runtime"
			"sync"
			"syscall"
			"time"
		)

		func main() {
			var wg sync.WaitGroup
			var mu sync.Mutex
			total := 0
			c := make(chan int, 4)
			for i := 0; i < 8; i++ {
				wg.Add(1)
				go func(n int) {
					defer wg.Done()
					for j := 0; j < 200; j++ {
						mu.Lock()
						total += n
						mu.Unlock()
						if j%20 == 0 {
							runtime.Gosched()
						}
					}
					c <- n
				}(i)
			}
			sum := 0
			for i := 0; i < 8; i++ {
				sum += <-c
			}
			wg.Wait()
			runtime.GC()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				panic(err)
			}
			go func() {
				s, _ := l.Accept()
				io.Copy(s, s)
				s.Close()
			}()
			s, _ := net.Dial("tcp", l.Addr().String())
			s.Write([]byte("echo"))
			s.(*net.TCPConn).CloseWrite()
			b, _ := io.ReadAll(s)
			out, _ := exec.Command("echo", "child").Output()
			sig := make(chan os.Signal, 1)
			signal.Notify(sig, syscall.SIGUSR1)
			syscall.Kill(os.Getpid(), syscall.SIGUSR1)
			got := <-sig
			select {
			case <-time.After(5 * time.Millisecond):
			}
			fmt.Println(total, sum, string(b), string(out), got)
			os.Exit(6)
		}
	END
	export GOCACHE=$PWD/cache GOFLAGS=-mod=mod GO111MODULE=off
	go build -o g g.go
	file g | grep -q 'statically' || CGO_ENABLED=0 go build -o g g.go
	repeat 20 same 6 ../g
	grep -q '^5600 28 echo child' rep.out
	# Functions are found by the table that the runtime itself needs.
	go build -ldflags '-s -w' -o g g.go
	repeat 5 same 6 ../g
	go build -ldflags '-s -w' -buildmode=pie -o g g.go
	repeat 5 same 6 ../g
	varies=1 repeat 2 same 0 go version
}

@test "rust: threads, channels, a panic" {
	need rustc
	cat >r.rs <<-'END'
		use std::sync::{mpsc, Arc, Condvar, Mutex, RwLock};
		use std::thread;
		use std::time::Duration;

		fn main() {
		    let total = Arc::new(Mutex::new(0u64));
		    let (tx, rx) = mpsc::channel();
		    let mut all = Vec::new();
		    for n in 0..4u64 {
		        let (total, tx) = (Arc::clone(&total), tx.clone());
		        all.push(thread::spawn(move || {
		            for i in 0..500 {
		                *total.lock().unwrap() += n * i;
		            }
		            tx.send(n).unwrap();
		        }));
		    }
		    drop(tx);
		    let mut got: Vec<u64> = rx.iter().collect();
		    got.sort();
		    for t in all {
		        t.join().unwrap();
		    }
		    let pair = Arc::new((Mutex::new(false), Condvar::new()));
		    let p = Arc::clone(&pair);
		    thread::spawn(move || {
		        thread::sleep(Duration::from_millis(3));
		        *p.0.lock().unwrap() = true;
		        p.1.notify_all();
		    });
		    let mut ready = pair.0.lock().unwrap();
		    while !*ready {
		        ready = pair.1.wait(ready).unwrap();
		    }
		    let lock = RwLock::new(vec![1, 2, 3]);
		    lock.write().unwrap().push(4);
		    println!("{} {:?} {:?}", total.lock().unwrap(), got, lock.read().unwrap());
		    let bad = thread::spawn(|| panic!("on purpose")).join();
		    std::process::exit(if bad.is_err() { 9 } else { 0 });
		}
	END
	rustc -C opt-level=1 -o r r.rs
	repeat 20 same 9 ../r
	grep -q '^748500 \[0, 1, 2, 3\]' rep.out
}

@test "ruby: threads, fork, a trap" {
	need ruby
	cat >r.rb <<-'END'
		q = Queue.new
		out = []
		ts = 3.times.map { |n| Thread.new { while (x = q.pop) != :end; out << x * n; end } }
		100.times { |i| q << i }
		3.times { q << :end }
		ts.each(&:join)
		puts out.size, Process.pid, rand, Time.now.to_f
		trap(:USR1) { puts "usr1" }
		Process.kill(:USR1, Process.pid)
		pid = fork { exit 7 }
		Process.wait pid
		puts $?.exitstatus, `echo child`, { a: [1, 2.5, nil] }.to_s
		GC.start
		exit 2
	END
	varies=1 repeat 20 same 2 ruby ../r.rb
}

@test "php" {
	need php
	cat >p.php <<-'END'
		<?php
		$a = [];
		for ($i = 0; $i < 20000; $i++) $a["k$i"] = sha1((string)$i);
		ksort($a);
		echo count($a), " ", md5(serialize($a)), " ", random_int(1, 1000000), "\n";
		echo preg_replace('/(\w+) (\w+)/', '$2 $1', "one two"), shell_exec("echo child");
		file_put_contents("f", json_encode(range(1, 100)));
		echo strlen(file_get_contents("f")), date(" Y"), "\n";
		exit(5);
	END
	varies=1 repeat 2 same 5 php ../p.php
}

@test "lua, guile, ocaml: an interpreter each" {
	need lua5.4 guile ocaml
	cat >p.lua <<-'END'
		local t = {}
		for i = 1, 20000 do t[#t + 1] = tostring(i):rep(3) end
		table.sort(t)
		print(#t, t[77], os.time(), math.random(1e9), tostring(t))
		local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
		print(co(), co(), io.popen("echo child"):read("a"))
		os.exit(3)
	END
	varies=1 repeat 2 same 3 lua5.4 ../p.lua
	cat >p.scm <<-'END'
		(use-modules (ice-9 threads) (ice-9 popen) (ice-9 rdelim))
		(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
		(display (par-map fib '(10 15 18)))
		(newline)
		(display (read-line (open-input-pipe "echo child")))
		(newline)
		(exit 4)
	END
	varies=1 repeat 20 same 4 guile --no-auto-compile ../p.scm
	cat >p.ml <<-'END'
		let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
		let () = Printf.printf "%d %f\n%!" (fib 22) (Sys.time ()); Gc.full_major (); exit 5
	END
	varies=1 repeat 2 same 5 ocaml ../p.ml
}

@test "emacs -batch" {
	need emacs
	cat >e.el <<-'END'
		(with-temp-buffer
		  (dotimes (i 500) (insert (format "%d line\n" (random 1000))))
		  (sort-lines nil (point-min) (point-max))
		  (write-region nil nil "out")
		  (princ (format "%d lines\n" (count-lines (point-min) (point-max)))))
		(princ (shell-command-to-string "echo child"))
		(kill-emacs 6)
	END
	varies=1 repeat 2 same 6 emacs -Q -batch -l ../e.el
}

@test "perl: signals, sockets, pseudo-terminals" {
	cat >p.pl <<-'END'
		use strict; use warnings; use Socket; use POSIX;
		my $n = 0;
		$SIG{CHLD} = sub { while (waitpid(-1, WNOHANG) > 0) { $n++ } };
		for (1 .. 10) { my $p = fork; exit 0 if !$p }
		select(undef, undef, undef, 0.01) while $n < 10;
		socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or die;
		if (!fork) { close $a; print $b uc(<$b>); exit 0 }
		close $b;
		syswrite $a, "text\n";
		print scalar <$a>;
		my $set = POSIX::SigSet->new(SIGUSR1);
		my $got = 0;
		$SIG{USR1} = sub { $got++ };
		sigprocmask(SIG_BLOCK, $set);
		kill USR1 => $$;
		print "blocked $got\n";
		sigprocmask(SIG_UNBLOCK, $set);
		print "seen $got\n";
		open(my $m, "+<", "/dev/ptmx") or die;
		print -c $m ? "ptmx\n" : "none\n";
		exit 11;
	END
	varies=1 repeat 5 same 11 perl ../p.pl
}
