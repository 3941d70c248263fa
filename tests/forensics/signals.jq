# Who sent a signal to whom?
#   trace-dump T | jq -n -r -f signals.jq
# event, signal, task that sent it, task that got it, what became of it
foreach inputs as $e ({};
	if $e.pid and $e.pid == $e.tid then .["\($e.pid)"] = $e.task else . end;
	select($e.type == "signal" and $e.siginfo.si_pid) |
	[$e.event, $e.name, .["\($e.siginfo.si_pid)"] // "outside", $e.task,
	$e.action] | @tsv)
