# Which mappings changed between two events of a task?
#   (trace-replay -q -g A --state T; trace-replay -q -g B --state T) |
#   jq -n -r -f changed.jq
# pages that changed, mapping
def hex: ltrimstr("0x") | explode |
	reduce .[] as $c (0; . * 16 + $c - (if $c > 96 then 87 else 48 end));
[inputs] | (map(.event) | unique) as [$a, $b] |
def pages($e): map(select(.type == "page" and .event == $e) |
	{(.addr): .hash}) | add // {};
pages($a) as $old | pages($b) as $new |
map(select(.type == "mapping" and .event == $b)) as $maps |
[$old + $new | keys[] | select($old[.] != $new[.]) | hex as $at |
	$maps[] | select((.start | hex) <= $at and $at < (.end | hex)) |
	"\(.start)-\(.end) \(.permissions) \(.name)"] |
group_by(.)[] | [length, .[0]] | @tsv
