# How much time did each process spend in which system call?
#   trace-dump -T syscall T | jq -n -r -f times.jq
# nanoseconds, how often, task, call: the longest first
[reduce (inputs | select(.duration)) as $e ({};
	.["\($e.task)\t\($e.name)"] |= [.[0] + $e.duration, .[1] + 1]) |
to_entries[] | [.value[0], .value[1], (.key / "\t")[]]] |
sort | reverse[] | @tsv
