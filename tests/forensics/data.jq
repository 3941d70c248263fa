# All data that a task got from a descriptor, in hexadecimal.
#   trace-dump -v T |
#   jq -n -r --argjson task 2 --argjson fd 3 --arg path "" -f data.jq |
#   basenc -d --base16 -i
def utf8: if . < 128 then .
	elif . < 2048 then 192 + (. / 64 | floor), 128 + . % 64
	elif . < 65536 then 224 + (. / 4096 | floor),
		128 + (. / 64 | floor) % 64, 128 + . % 64
	else 240 + (. / 262144 | floor), 128 + (. / 4096 | floor) % 64,
		128 + (. / 64 | floor) % 64, 128 + . % 64 end;
def digits: "0123456789ABCDEF"[. / 16 | floor:][:1] + "0123456789ABCDEF"[. % 16:][:1];
def bytes: .hex? // ([explode[] | utf8 | digits] | add) // "" | ascii_upcase;
foreach (inputs | select(.task == $task)) as $e (false;
	if $e.type == "more" then . else $e.type == "syscall" and
		$e.args.fd == $fd and ($path == "" or $e.path == $path) and
		($e.name | test("^(read|pread64|readv|preadv2?|recvfrom)$")) end;
	select(.) | $e.mem[].data | bytes)
