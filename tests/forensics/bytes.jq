# How many bytes did each system call move?
#   trace-dump T | jq -n -r -f bytes.jq
# call, how often, bytes
reduce (inputs | select(.type == "syscall" and (.result | type) == "number" and
	.result > 0 and (.name | test("read|write|recv|send|splice|copy")))) as $e
	({}; .[$e.name] |= [.[0] + 1, .[1] + $e.result]) |
to_entries[] | [.key, .value[]] | @tsv
