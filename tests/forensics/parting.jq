# At which event did run B leave run A, and how?
#   trace-diff A B | jq -r -f parting.jq
# kind, event in A, event in B, what differs
select(.type == "verdict").first | select(.) |
[.kind, .left // "-", .right // "-", .what] | @tsv
