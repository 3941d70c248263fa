# The tree of processes, with how each ended.
#   trace-dump --tasks T | jq -n -r -f tree.jq
[inputs] as $all |
def tree($parent; $indent): $all[] | select(.parent == $parent) |
	"\($indent)\(.task) \(.exe) \(.exit_code // .signal)",
	tree(.task; $indent + "  ");
tree(0; "")
