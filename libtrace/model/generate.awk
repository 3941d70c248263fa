# Turns formats/flags.tbl, formats/ioctls.tbl and formats/syscalls.tbl, in that
# order, into the C tables of libtrace/model/tables.h.  A line that breaks the
# grammar of its file stops the build with one message.  Portable awk.

function die(msg)
{
	printf "%s:%d: %s\n", FILENAME, FNR, msg > "/dev/stderr"
	failed = 1
	exit 1
}

function is_number(s)
{
	return s ~ /^-?(0|[1-9][0-9]*|0x[0-9a-fA-F]+|0[0-7]+)$/
}

function is_size(s)
{
	return s ~ /^[1-9][0-9]*$/
}

function is_name(s)
{
	return s ~ /^[A-Za-z_][A-Za-z_0-9]*$/
}

# Closes the flag set being read, if any.
function end_set()
{
	if (set == "")
		return
	if (set_n == 0)
		die("set " set " is empty")
	sets = sets sprintf("\t{\"%s\", %s, flags_%s, %d},\n", set, set_enum,
			    set, set_n)
	# Not by sprintf, whose result mawk limits to 8192 bytes.
	flag_arrays = flag_arrays "static const struct tr_flag flags_" set \
		"[] = {\n" set_body "};\n\n"
	set = ""
}

function begin_set(kind, name)
{
	end_set()
	if (!is_name(name))
		die("bad set name '" name "'")
	if (name in set_index)
		die("set " name " is defined twice")
	set = name
	set_index[name] = nsets++
	set_enum = kind == "enum" ? "true" : "false"
	set_n = 0
	set_body = ""
}

# One flag or enum member: NAME VALUE [MASK].
function add_flag(name, value, mask)
{
	if (!is_name(name))
		die("bad name '" name "'")
	if ((set, name) in flag_seen)
		die(name " is twice in set " set)
	flag_seen[set, name] = 1
	if (!is_number(value))
		die("bad value '" value "' of " name)
	if (mask != "" && (set_enum == "true" || !is_number(mask)))
		die("bad mask '" mask "' of " name)
	if (set_enum == "true") {
		if ((set, value) in value_seen)
			die("value " value " is twice in enum " set)
		value_seen[set, value] = 1
		mask = "0xffffffff"
	} else if (mask == "") {
		if (value ~ /^-|^0+$/)
			die(name " needs a mask")
		mask = value
	}
	set_n++
	if (value ~ /^-/)
		value = "(uint32_t)" value
	set_body = set_body sprintf("\t{\"%s\", %s, %s},\n", name, value, mask)
	checks = checks sprintf("#ifdef %s\n\t{\"%s\", (uint32_t)(%s), " \
		"(uint32_t)(%s)},\n#endif\n", name, name, name, value)
}

function flags_line()
{
	if ($1 == "flags" || $1 == "enum") {
		if (NF != 2)
			die("expected '" $1 " NAME'")
		begin_set($1, $2)
		return
	}
	if (set == "")
		die("a member before the first set")
	if (NF != 2 && NF != 3)
		die("expected 'NAME VALUE [MASK]'")
	add_flag($1, $2, NF == 3 ? $3 : "")
}

function struct_line()
{
	if (NF != 3 || !is_name($2) || !is_size($3))
		die("expected 'struct NAME SIZE'")
	if ($2 in struct_size)
		die("struct " $2 " is defined twice")
	struct_size[$2] = $3
	struct_sizes = struct_sizes sprintf("\t{\"%s\", %s},\n", $2, $3)
}

# The byte count of N or "struct NAME"; sets struct_named.
function const_size(s,    name)
{
	struct_named = ""
	if (s ~ /^struct@/) {
		name = substr(s, 8)
		if (!(name in struct_size))
			die("unknown struct " name)
		struct_named = name
		return struct_size[name]
	}
	if (!is_size(s))
		die("bad size '" s "'")
	return s
}

function ioctl_line(    dir, always, n, code)
{
	if (NF != 3 || !is_name($1) || !is_number($2))
		die("expected 'NAME NUMBER EFFECT'")
	if ($1 in ioctl_name)
		die($1 " is defined twice")
	ioctl_name[$1] = 1
	if (ioctl_value($2) in ioctl_nr)
		die("ioctl " $2 " is defined twice")
	ioctl_nr[ioctl_value($2)] = 1
	dir = "0"; always = "false"; n = 0; code = "false"
	if ($3 != "none") {
		if ($3 !~ /^(in|out|inout)!?\[[^][]*\]$/)
			die("bad effect '" $3 "'")
		dir = direction($3)
		always = $3 ~ /!/ ? "true" : "false"
		if (inside($3) == "?")
			code = "true"
		else
			n = const_size(inside($3))
	}
	ioctls = ioctls sprintf("\t{\"%s\", %s, (enum tr_dir)%s, %s, %s, " \
		"%s},\n", $1, $2, dir, n, always, code)
	nioctls++
	add_flag($1, $2, "")
}

# Values are compared as text, in one spelling.
function ioctl_value(s)
{
	s = tolower(s)
	if (s !~ /^0x/)
		die("ioctl numbers are hexadecimal")
	sub(/^0x0*/, "", s)
	return s
}

function direction(type)
{
	if (type ~ /^inout/ || type ~ /^iovec-inout/)
		return "TR_DIR_INOUT"
	return type ~ /^(iovec-|msg-)?in/ ? "TR_DIR_IN" : "TR_DIR_OUT"
}

# What stands between the brackets.
function inside(type)
{
	sub(/^[^[]*\[/, "", type)
	sub(/\]$/, "", type)
	return type
}

# The index of the argument called name in the row being read.
function arg_index(name,    i)
{
	for (i = 0; i < row_n; i++)
		if (row_name[i] == name)
			return i
	die("no argument called '" name "'")
}

function size_rule(kind, arg, limit, scale)
{
	return sprintf("{%s, %d, %d, %s}", kind, arg, limit, scale)
}

# A size as the grammar gives it, as the initialiser of a tr_size_rule.
function size_of(s,    limit, scale, at)
{
	struct_named = ""
	if (s == "?")
		return size_rule("TR_SIZE_CODE", 0, 0, 0)
	if (s ~ /^\*/)
		return size_rule("TR_SIZE_DEREF32", arg_index(substr(s, 2)), 0, 1)
	limit = 0
	at = index(s, "<=")
	if (at) {
		limit = arg_index(substr(s, at + 2)) + 1
		s = substr(s, 1, at - 1)
		if (s !~ /^result/)
			die("only a result can have a limit")
	}
	scale = 1
	at = index(s, "*")
	if (at) {
		scale = const_size(substr(s, at + 1))
		s = substr(s, 1, at - 1)
	}
	if (s == "result")
		return size_rule("TR_SIZE_RESULT", 0, limit, scale)
	if (is_size(s) || s ~ /^struct@/)
		return size_rule("TR_SIZE_CONST", 0, 0, const_size(s))
	return size_rule("TR_SIZE_ARG", arg_index(s), 0, scale)
}

function flag_set(type)
{
	type = substr(type, 7, length(type) - 7)
	if (!(type in set_index))
		die("unknown flag set '" type "'")
	return sprintf("&tr_flag_sets[%d]", set_index[type])
}

# One argument as a C initialiser.
function arg_of(name, type, shown,    ctype, dir, size, flags, always)
{
	dir = "(enum tr_dir)0"; flags = "NULL"; always = "false"
	size = size_rule("TR_SIZE_CONST", 0, 0, 0)
	struct_named = ""
	if (type in scalar_type) {
		ctype = scalar_type[type]
	} else if (type ~ /^flags\([a-z_0-9]+\)$/) {
		ctype = "TR_ARG_FLAGS"
		flags = flag_set(type)
	} else if (type ~ /^msg-(in|out)$/) {
		ctype = "TR_ARG_MSG"
		dir = direction(type)
		struct_named = "msghdr"
	} else if (type ~ /^iovec-(in|out)\[[a-z_0-9]+\]$/) {
		ctype = "TR_ARG_IOVEC"
		dir = direction(type)
		size = size_rule("TR_SIZE_ARG", arg_index(inside(type)), 0, 1)
		struct_named = "iovec"
	} else if (type ~ /^(in|out!?|inout!?)\[[^][]+\]$/) {
		ctype = "TR_ARG_BUF"
		dir = direction(type)
		always = type ~ /!/ ? "true" : "false"
		size = size_of(inside(type))
	} else
		die("unknown type '" type "'")
	if (shown == "")
		shown = struct_named
	else if (!is_name(shown))
		die("bad name '" shown "'")
	shown = shown == "" ? "NULL" : "\"" shown "\""
	return sprintf("\t\t{\"%s\", %s, %s, %s, %s,\n\t\t %s, %s},\n", name,
		       ctype, dir, always, size, shown, flags)
}

function class_of(s)
{
	deny = 0
	if (s in class_name)
		return class_name[s]
	if (s !~ /^deny:E/)
		die("unknown class '" s "'")
	sub(/^deny:/, "", s)
	if (!(("errno", s) in flag_seen))
		die("unknown errno '" s "'")
	deny = errno_value[s]
	return "TR_SYS_DENY"
}

function syscall_line(    i, n, part, class, args)
{
	if (NF < 3 || NF > 9 || $1 !~ /^(0|[1-9][0-9]*)$/ || !is_name($2))
		die("expected 'NR NAME CLASS ARG...' with at most six ARGs")
	if ($1 in sys_nr)
		die("number " $1 " is defined twice")
	if ($2 in sys_name)
		die($2 " is defined twice")
	if ($1 + 0 > 1023)
		die("number " $1 " is too large")
	sys_nr[$1] = 1
	sys_name[$2] = 1
	class = class_of($3)
	quick = $3 ~ /^quick/ ? "true" : "false"
	row_n = NF - 3
	for (i = 0; i < row_n; i++) {
		n = split($(i + 4), part, ":")
		if (n < 2 || n > 3 || !is_name(part[1]))
			die("bad argument '" $(i + 4) "'")
		if (($1, part[1]) in arg_seen)
			die("two arguments called '" part[1] "'")
		arg_seen[$1, part[1]] = 1
		row_name[i] = part[1]
		row_type[i] = part[2]
		row_shown[i] = n == 3 ? part[3] : ""
	}
	args = ""
	for (i = 0; i < row_n; i++)
		args = args arg_of(row_name[i], row_type[i], row_shown[i])
	rows = rows sprintf("\t[%s] = {%s, \"%s\", %s, %s, %s, %d, {\n%s\t}},\n",
			    $1, $1, $2, class, deny, quick, row_n,
			    args == "" ? "\t\t{0},\n" : args)
	sys_checks = sys_checks sprintf("#ifdef __NR_%s\n\t{\"%s\", " \
		"__NR_%s, %s},\n#endif\n", $2, $2, $2, $1)
}

BEGIN {
	n = split("int uint long size fd dirfd pid signal mode ptr path strv",
		  word, " ")
	for (i = 1; i <= n; i++)
		scalar_type[word[i]] = "TR_ARG_" toupper(word[i])
	n = split("plain map task signal unmodelled", word, " ")
	for (i = 1; i <= n; i++)
		class_name[word[i]] = "TR_SYS_" toupper(word[i])
	class_name["quick"] = class_name["plain"]
	class_name["quickmap"] = class_name["map"]
}

FNR == 1 {
	nfiles++
	end_set()
	if (nfiles == 2)
		begin_set("enum", "ioctl")
}

/^[ \t]*(#|$)/ { next }

nfiles != 1 && $1 == "struct" { struct_line(); next }

# "struct NAME" as a size is one word.
nfiles != 1 {
	gsub(/\[struct +/, "[struct@")
	gsub(/\*struct +/, "*struct@")
}

nfiles == 1 {
	flags_line()
	if (set == "errno" && NF == 2 && $1 != "enum")
		errno_value[$1] = $2
	next
}
nfiles == 2 { ioctl_line(); next }
nfiles == 3 { syscall_line(); next }

END {
	if (failed)
		exit 1
	if (nfiles != 3) {
		print "usage: generate.awk flags.tbl ioctls.tbl syscalls.tbl" \
			> "/dev/stderr"
		exit 1
	}
	print "/* Made by generate.awk from formats/syscalls.tbl," \
		" ioctls.tbl and flags.tbl. */"
	print "#include \"libtrace/model/tables.h\"\n"
	print "#ifdef TR_MODEL_CHECK"
	print "/* The same numbers as the system's headers have them. */"
	print "static const struct tr_model_check tr_value_checks[] = {"
	print checks "};"
	print "static const struct tr_model_check tr_number_checks[] = {"
	print sys_checks "};"
	print "#else"
	print flag_arrays "const struct tr_flag_set tr_flag_sets[] = {"
	print sets "};"
	print "const size_t tr_flag_sets_n = " nsets ";\n"
	print "const struct tr_ioctl tr_ioctl_table[] = {"
	print ioctls "};"
	print "const size_t tr_ioctl_table_n = " nioctls ";\n"
	print "const struct tr_struct_size tr_struct_sizes[] = {"
	print struct_sizes "};"
	print "const size_t tr_struct_sizes_n ="
	print "\tsizeof tr_struct_sizes / sizeof *tr_struct_sizes;\n"
	print "const struct tr_sys tr_sys_table[] = {"
	print rows "};"
	print "const size_t tr_sys_table_n ="
	print "\tsizeof tr_sys_table / sizeof *tr_sys_table;"
	print "#endif"
}
