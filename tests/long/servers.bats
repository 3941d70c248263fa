#!/usr/bin/env bats
# Servers and their clients over the loopback interface: both in one
# recording, and the server recorded alone.

load ../helpers

# A port nobody listens on.
free_port() {
	/usr/bin/python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# serve STATUS CLIENT COMMAND...: record the command, run the client beside
# it, unrecorded, which makes it end; replay it.
serve() {
	local want=$1 client=$2 got=0 server
	shift 2
	rm -rf t run
	mkdir run
	(cd run && in_session 120 trace-record -o ../t "$@" \
		>../rec.out 2>../rec.err </dev/null) &
	server=$!
	(cd run && in_session 100 sh -c "$client" >../client.out 2>&1) ||
		fail "client: $(tail client.out)" "$(tail rec.err)"
	wait $server || got=$?
	[ $got = "$want" ] || fail "recorded: status $got" "$(tail rec.err)"
	limit=120 replays "$want"
	cmp rec.out rep.out
	cmp rec.err rep.err
	expect 0 trace-verify t
}

@test "redis: server and benchmark, the server alone" {
	need redis-server redis-cli redis-benchmark
	local port
	port=$(free_port)
	cat >r.sh <<-END
		redis-server --port $port --save '' --appendonly no >log &
		until redis-cli -p $port ping >/dev/null 2>&1; do sleep 0.1; done
		redis-benchmark -p $port -n 1000 -q -t set,get,lpush,mset |
			tr '\r' '\n' | grep -c second
		redis-cli -p $port set k value
		redis-cli -p $port get k
		redis-cli -p $port shutdown nosave
		wait \$!
	END
	limit=120 varies=1 repeat 2 same 0 sh ../r.sh
	grep -q '^value$' rep.out
	serve 0 "until redis-cli -p $port ping >/dev/null 2>&1; do sleep 0.1; done
		redis-benchmark -p $port -n 1000 -q -t set,get
		redis-cli -p $port bgsave; redis-cli -p $port info | grep -c :
		redis-cli -p $port shutdown save" \
		redis-server --port "$port" --appendonly yes
}

@test "nginx and curl: files, ranges, an error, a reload, the server alone" {
	need nginx curl
	local port
	port=$(free_port)
	mkdir html
	echo hello >html/index.html
	awk 'BEGIN { for (i = 0; i < 100000; i++) print i * 7919 }' >html/big
	cat >n.conf <<-END
		worker_processes 2;
		daemon off;
		pid $PWD/pid;
		error_log $PWD/errors;
		events { worker_connections 64; }
		http {
			access_log $PWD/access;
			sendfile on;
			aio threads;
			client_body_temp_path $PWD/tmp1;
			proxy_temp_path $PWD/tmp2;
			fastcgi_temp_path $PWD/tmp3;
			uwsgi_temp_path $PWD/tmp4;
			scgi_temp_path $PWD/tmp5;
			server { listen 127.0.0.1:$port; root $PWD/html; }
		}
	END
	chmod 755 . html
	cat >n.sh <<-END
		u=http://127.0.0.1:$port
		nginx -p $PWD -c $PWD/n.conf & p=\$!
		until curl -s -o /dev/null \$u/; do sleep 0.1; done
		for i in 1 2 3; do curl -s \$u/; curl -s \$u/big | cksum; done
		curl -s -r 100-199 \$u/big | cksum
		curl -s -o /dev/null -w '%{http_code}\n' \$u/none
		curl -s \$u/big >b1 & curl -s \$u/big >b2; wait \$!
		cmp b1 b2
		kill -HUP \$p
		sleep 0.2
		curl -s \$u/
		kill -QUIT \$p
		wait \$p
	END
	limit=120 repeat 3 same 0 sh ../n.sh
	serve 0 "until curl -s -o x http://127.0.0.1:$port/; do sleep 0.1; done
		for i in 1 2 3; do curl -s http://127.0.0.1:$port/big | cmp - ../html/big
		done; kill -QUIT \$(cat ../pid)" nginx -p "$PWD" -c "$PWD/n.conf"
}

@test "curl: https from openssl s_server" {
	need curl openssl
	local port
	port=$(free_port)
	cat >s.sh <<-END
		openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -days 2 \
			-subj /CN=localhost -addext subjectAltName=DNS:localhost 2>log
		openssl s_server -accept $port -key k -cert c -www -quiet & p=\$!
		until curl -s -o /dev/null --cacert c https://localhost:$port/; do
			sleep 0.1
		done
		curl -s --cacert c https://localhost:$port/ | grep Cipher
		curl -s --tls-max 1.2 --cacert c https://localhost:$port/ | grep -c :
		curl -s https://localhost:$port/ || echo "not trusted: \$?"
		kill \$p
		wait \$p
		exit 0
	END
	limit=120 varies=1 repeat 3 same 0 sh ../s.sh
	grep -q 'not trusted: 60' rep.out
}

@test "postgres: initdb, server, queries, as a user without rights" {
	local bin port
	bin=$(echo /usr/lib/postgresql/*/bin)
	[ -x "$bin/initdb" ] || skip "no initdb here"
	port=$(free_port)
	cat >p.sh <<-END
		PATH=$bin:\$PATH
		d=\$(TMPDIR=/tmp mktemp -d) && cd \$d || exit
		initdb -D \$d/db -A trust >log || { cat log; exit 1; }
		pg_ctl -D \$d/db -o "-p $port -k \$d" -w -l \$d/l start >/dev/null
		psql -q -h \$d -p $port postgres <<-SQL
			create table t(a int primary key, b text);
			insert into t select i, md5(i::text) from generate_series(1, 3000) i;
			create index on t(b);
			analyze t;
			set max_parallel_workers_per_gather = 2;
			set parallel_setup_cost = 0;
			set min_parallel_table_scan_size = 0;
			select count(*), max(b) from t where b like '%7%';
			select count(*) from t x join t y on x.b < y.b and x.a = y.a + 1;
		SQL
		for i in 1 2; do
			psql -q -h \$d -p $port postgres -c "begin; update t
				set b = b || 'x' where a % 2 = \$i - 1; commit" &
		done
		wait
		psql -A -t -h \$d -p $port postgres -c 'select sum(length(b)) from t'
		pg_ctl -D \$d/db -w stop >/dev/null
		e=\$?
		rm -rf \$d
		exit \$e
	END
	# The user cannot enter the test's directory.
	limit=250 varies=1 same 0 setpriv --reuid=65534 --regid=65534 \
		--clear-groups sh -c "$(cat p.sh)"
	grep -q '^99000$' rep.out
}

@test "memcached: threads" {
	need memcached
	local port
	port=$(free_port)
	cat >m.sh <<-END
		memcached -u nobody -p $port -U 0 -l 127.0.0.1 -t 2 & p=\$!
		until (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; do sleep 0.1; done
		for i in 1 2 3 4; do
			(exec 3<>/dev/tcp/127.0.0.1/$port
			printf 'set k%d 0 0 3\r\nabc\r\nget k%d\r\nquit\r\n' \$i \$i >&3
			cat <&3 >o\$i) &
			c="\$c \$!"
		done
		wait \$c
		cat o1 o2 o3 o4
		kill \$p
		wait \$p
		echo \$?
	END
	repeat 20 same 0 bash ../m.sh
	[ "$(grep -c abc rep.out)" = 4 ]
}
