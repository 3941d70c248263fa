#!/usr/bin/env bats
# Tools of many kinds: databases, compressors, media, terminals, namespaces.

load ../helpers

@test "sqlite3: writers at the same time, with a journal and with WAL" {
	need sqlite3
	cat >s.sh <<-'END'
		for mode in delete wal; do
			f=$mode.db
			sqlite3 $f "pragma journal_mode = $mode; create table t(a, b)"
			for i in 1 2 3 4; do
				(for j in 1 2 3 4 5; do
					sqlite3 -cmd '.timeout 30000' $f "begin immediate;
						insert into t values($i, $j);
						select count(*) from t; commit" >>out$i
				done) &
			done
			wait
			sqlite3 $f 'select count(*), sum(a), sum(b) from t;
				pragma integrity_check'
		done
	END
	limit=120 repeat 20 same 0 sh ../s.sh
	grep -q '^20|50|60$' rep.out
}

@test "xz -T2 and zstd -T2 of something larger" {
	need xz zstd
	awk 'BEGIN { for (i = 0; i < 300000; i++)
		print (i * 7919) % 1000003, i % 17, "a line" }' >in
	limit=120 repeat 20 same 0 sh -c 'xz -T2 --block-size=2MiB -1 -c ../in |
		xz -T2 -dc | cksum'
	limit=120 repeat 20 same 0 sh -c 'zstd -q -T2 -3 -c ../in |
		zstd -q -dc | cksum'
}

@test "ffmpeg: encode, decode" {
	need ffmpeg
	limit=200 repeat 3 same 0 sh -c 'ffmpeg -v error -f lavfi \
		-i testsrc=duration=1:size=160x120:rate=5 -threads 2 -c:v mpeg4 \
		-bitexact -y x.avi && ffmpeg -v error -i x.avi -f framemd5 -'
	[ "$(grep -c '^0,' rep.out)" = 5 ]
}

@test "imagemagick" {
	need convert
	limit=120 repeat 5 same 0 sh -c 'convert -size 300x200 gradient:red-blue \
		-swirl 90 -resize 150x x.ppm && cksum x.ppm'
}

@test "man" {
	need man
	limit=100 varies=1 repeat 2 same 0 man -l "$SOURCE/man/trace-record.1"
	grep -q NAME rep.out
}

@test "vim -es" {
	need vim
	varies=1 repeat 2 same 0 vim -u NONE -es -c 'call append(0, ["b", "a"])' \
		-c '%sort' -c 'let x = system("echo child")' -c 'w! out' \
		-c 'verbose echo x getline(2)' -c 'q'
	grep -q 'child' rep.err
}

@test "tmux: a shell in a pseudo-terminal" {
	need tmux
	cat >t.sh <<-'END'
		tmux() { command tmux -S "$PWD/socket" -f /dev/null "$@"; }
		tmux new-session -d -x 80 -y 24 sh
		tmux send-keys 'echo $((6 * 7)); stty size' Enter
		until tmux capture-pane -p | grep -q '^24 80'; do sleep 0.1; done
		tmux capture-pane -p | grep -o '42$'
		tmux resize-window -x 60 -y 20
		tmux split-window 'sleep 0.2'
		tmux list-panes | wc -l
		tmux kill-server
		sleep 0.1
	END
	varies=1 repeat 5 same 0 sh ../t.sh
	grep -q '^42$' rep.out || fail "$(cat rep.out)"
}

@test "script: a terminal session with job control" {
	need script
	printf 'sleep 30\n\032bg\njobs\nkill %%1\nwait\necho done\nexit 3\n' >in
	varies=1 from=in same 3 script -q -e -c 'bash --norc -i' log
	grep -q 'done' rep.out
}

@test "gpg: keys, an agent, encryption" {
	need gpg gpg-agent
	cat >g.sh <<-'END'
		export GNUPGHOME=$PWD/k
		mkdir -m 700 k
		gpg --batch -q --passphrase '' --quick-gen-key a@example.org ed25519
		gpg --batch -q --passphrase '' --quick-add-key \
			"$(gpg --with-colons -k | awk -F: '/^fpr/ { print $10; exit }')" cv25519
		echo text | gpg --batch -q -r a@example.org --trust-model always -e |
			gpg --batch -q -d
		gpgconf --kill all
	END
	varies=1 repeat 3 same 0 sh ../g.sh
	grep -q '^text$' rep.out
}

@test "rsync, tar, cpio of a tree with links and holes" {
	need rsync
	cat >r.sh <<-'END'
		mkdir -p a/b
		echo x >a/b/f
		ln a/b/f a/hard
		ln -s b/f a/soft
		truncate -s 1M a/hole
		mkfifo a/fifo
		rsync -aHS a/ r/
		tar -cSf - a | tar -xf - -C r
		find r | sort
		rm a/fifo r/a/fifo
		diff -r --no-dereference a r/a && stat -c '%h %s' r/hard r/a/hole
	END
	repeat 3 same 0 sh ../r.sh
}

@test "unshare: namespaces and mounts" {
	[ "$(id -u)" = 0 ] || skip "not root"
	cat >u.sh <<-'END'
		mkdir m
		unshare -m -p -f -u -n -i --mount-proc sh -c '
			hostname other && hostname
			echo $$; ls /proc | grep -c "^[0-9]"
			mount -t tmpfs none m && echo x >m/f && ls m
			ip link 2>/dev/null | grep -c lo'
		ls m
		unshare -U -r sh -c 'id -u; cat /proc/self/uid_map'
		unshare -C -T true; echo $?
		chroot / /bin/echo chroot
	END
	varies=1 repeat 3 same 0 sh ../u.sh
	grep -q '^other$' rep.out
}

@test "busybox and dash" {
	need busybox
	repeat 2 same 4 busybox sh -c 'busybox seq 100 |
		busybox awk "{ s += \$1 } END { print s }"
		busybox find /etc -name "pass*" | busybox sort
		busybox dd if=/dev/zero bs=4k count=10 2>/dev/null | busybox md5sum
		busybox vi -h >/dev/null 2>&1
		exit 4'
	repeat 2 same 7 dash -c 'trap "echo term" TERM; (kill -TERM $$)
		trap "echo exit; exit 7" EXIT; for i in 1 2 3; do sleep 0 & done; wait; exit 1'
}

@test "ssh to this host" {
	need ssh sshd ssh-keygen
	[ "$(id -u)" = 0 ] || skip "not root"
	mkdir -p /run/sshd
	cat >s.sh <<-END
		ssh-keygen -q -t ed25519 -N '' -f hk
		ssh-keygen -q -t ed25519 -N '' -f uk
		$(command -v sshd) -D -p 7722 -h \$PWD/hk -o PidFile=none -o UsePAM=no \
			-o StrictModes=no -o AuthorizedKeysFile=\$PWD/uk.pub & p=\$!
		sleep 1
		ssh -p 7722 -i uk -o StrictHostKeyChecking=no \
			-o UserKnownHostsFile=kh root@127.0.0.1 'echo over; exit 5'
		echo \$?
		kill \$p
		wait
	END
	varies=1 same 0 sh ../s.sh
	grep -q '^5$' rep.out
}

@test "tools of systemd where systemd does not run" {
	need systemctl journalctl
	same 1 systemctl --no-pager status
	varies=1 same 0 journalctl --no-pager -n 1 --directory "$PWD"
}
