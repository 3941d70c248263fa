# Which files did which process read and write?
#   trace-dump T | jq -n -r -f files.jq
# task, read or write, bytes, file
reduce (inputs | select(.type == "syscall" and .path and
	(.name | test("^p?(read|write)(v|v2|64)?$")) and .result > 0)) as $e ({};
	(if $e.name | test("read") then "read" else "write" end) as $what |
	.["\($e.task)\t\($what)\t\($e.path)"] += $e.result) |
to_entries[] | (.key / "\t") as $k | [$k[0, 1], .value, $k[2]] | @tsv
