# Turns formats/flags.tbl, formats/ioctls.tbl and formats/syscalls.tbl, in that
# order, into the tables that survey.c includes: every system call with the
# types of its arguments, every ioctl command, and the members of flag sets.

function end_set()
{
	if (set != "")
		print "};"
	set = ""
}

/^#/ || /^$/ { next }

FILENAME ~ /flags/ {
	if ($1 == "flags" || $1 == "enum") {
		end_set()
		set = $2
		known[set] = 1
		printf "static const uint32_t set_%s[] = {\n", set
	} else {
		printf "\t(uint32_t)%s,\n", $2
	}
	next
}

$1 == "struct" { size["struct " $2] = $3; next }

FILENAME ~ /ioctls/ {
	end_set()
	ioctls = ioctls sprintf("\t{\"%s\", %s},\n", $1, $2)
	next
}

# Memory of a known size says how much; other memory is as large as it is.
function buffer(spec,  n)
{
	n = spec
	sub(/^[^[]*\[/, "", n)
	sub(/\].*/, "", n)
	return n in size ? size[n] : n ~ /^[0-9]+$/ ? n : 0
}

function argument(spec,  type, kind)
{
	type = spec
	sub(/^[^:]*:/, "", type)
	kind = type
	sub(/[^a-z].*/, "", kind)
	if (kind == "flags") {
		sub(/^flags\(/, "", type)
		sub(/\).*/, "", type)
		if (type in known)
			return sprintf("{FLAGS, 0, set_%s, sizeof set_%s / 4}",
				       type, type)
		return "{INT, 0, 0, 0}"
	}
	if (kind ~ /^(in|out|inout|ptr)$/)
		return sprintf("{MEMORY, %d, 0, 0}", buffer(type))
	if (type ~ /^iovec/)
		return "{IOVEC, 0, 0, 0}"
	if (type ~ /^msg-/)
		return "{MESSAGE, 0, 0, 0}"
	return "{" toupper(kind) ", 0, 0, 0}"
}

# Struct sizes are written with blanks inside brackets.
FILENAME ~ /syscalls/ {
	gsub(/struct /, "struct#")
	$0 = $0
	if ($3 != "plain" && $3 != "quick")
		next
	args = ""
	for (i = 4; i <= NF; i++) {
		spec = $i
		gsub(/#/, " ", spec)
		args = args (i > 4 ? ", " : "") argument(spec)
	}
	calls = calls sprintf("\t{%d, \"%s\", %d, {%s}},\n", $1, $2, NF - 3,
			      args == "" ? "{INT, 0, 0, 0}" : args)
}

END {
	end_set()
	print "static const struct command ioctls[] = {\n" ioctls "};"
	print "static const struct call calls[] = {\n" calls "};"
}
