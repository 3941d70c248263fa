#!/usr/bin/env bats
# make install: complete, usable from there, and gone after uninstall.

load helpers

# The tools under test must not be built anew: other tests are using them.
install_here() {
	make -o all -C "$SOURCE" BUILD="$BUILD" DESTDIR="$PWD/root" PREFIX=/usr install \
		>log 2>&1 || fail "$(cat log)"
}

@test "everything is installed" {
	install_here
	for t in $TOOLS; do
		[ -x "root/usr/bin/$t" ]
		[ -f "root/usr/share/man/man1/$t.1" ]
		[ -f "root/usr/share/bash-completion/completions/$t" ]
		[ -f "root/usr/share/zsh/site-functions/_$t" ]
		[ -f "root/usr/share/fish/vendor_completions.d/$t.fish" ]
	done
	for m in man3/libtrace.3 man5/trace-format.5 man7/trace.7; do
		[ -f root/usr/share/man/$m ]
	done
	[ -f root/usr/share/libtrace/events.schema.json ]
	[ -f root/usr/share/doc/libtrace/trace-format.md ]
	expect 0 root/usr/bin/trace-dump --version
}

@test "the example of libtrace(3) builds against the installed library" {
	install_here
	# Bold is overstrike: a character, a backspace, the character.
	mandoc -T ascii "$SOURCE/man/libtrace.3" | sed $'s/.\b//g' | awk '
		/^EXAMPLES/ { inside = 1 }
		/^SEE ALSO/ { inside = 0 }
		inside && /#include/ { on = 1 }
		inside && on' >example.c
	grep -q 'tr_cursor_next' example.c
	export PKG_CONFIG_PATH=$PWD/root/usr/lib/pkgconfig
	# shellcheck disable=SC2046
	${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -o example example.c \
		-Iroot/usr/include -Lroot/usr/lib \
		$(pkg-config --libs libtrace)
	make_trace t
	[ "$(./example t)" = "$(trace-dump --stats t |
		jq '[.syscalls[].errors] | add')" ]
}

@test "the public headers are self-contained" {
	install_here
	for cc in "${CC:-cc}" clang; do
		command -v "$cc" || continue
		(cd root/usr/include && find libtrace -name '*.h') |
			while read -r header; do
				echo "#include <$header>" | $cc -std=gnu11 -Wall \
					-Werror -Iroot/usr/include \
					-fsyntax-only -x c -
			done
	done
}

@test "uninstall removes every file" {
	install_here
	make -C "$SOURCE" BUILD="$BUILD" DESTDIR="$PWD/root" PREFIX=/usr \
		uninstall >log 2>&1
	[ "$(find root -type f)" = "" ]
}
