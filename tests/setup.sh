#!/bin/sh
# Install the packages that building and testing need.
#
#   tests/setup.sh [build] [check] [demo] [long]
#                                           install what is missing (apt)
#   tests/setup.sh --probe                  only say in one line what building
#                                           misses; works on any distribution
#
# The programs of the list `long` may stay missing: their tests are skipped.
#
# Needs nothing but sh, and dpkg and apt-get for installing.
set -eu

build='gcc libc6-dev linux-libc-dev make mawk pkg-config zlib1g-dev
libdeflate-dev libjansson-dev libarchive-dev libxxhash-dev nettle-dev libelf-dev
libdw-dev libzydis-dev'
check='bats jq python3 python3-xxhash python3-jsonschema mandoc shellcheck
clang git sqlite3 perl procps file xz-utils zstd zsh fish gpg gpg-agent age
btrfs-progs xfsprogs gdb strace'
demo='jq'
# The programs that the long tests record.
long='busybox cargo cmake curl default-jdk-headless emacs-nox ffmpeg golang-go
gpg gpg-agent guile-3.0 imagemagick lld lua5.4 man-db memcached nginx-light
ninja-build nodejs ocaml-nox openssh-client openssh-server openssl php-cli
postgresql redis-server rsync ruby rustc tmux valgrind vim'

say() {
	printf '%s\n' "$*" >&2
}

have_header() {
	printf '#include <%s>\n' "$1" | cc -E - >/dev/null 2>&1
}

# What building needs, found by use and not by package name.
probe() {
	missing=
	for tool in cc awk pkg-config; do
		command -v $tool >/dev/null 2>&1 || missing="$missing $tool"
	done
	for lib in zlib jansson libarchive libxxhash nettle libelf libdw; do
		pkg-config --exists $lib 2>/dev/null || missing="$missing $lib"
	done
	have_header Zydis/Zydis.h || missing="$missing Zydis"
	have_header linux/seccomp.h || missing="$missing linux-headers"
	[ -z "$missing" ] && return 0
	say "missing for the build:$missing (on Debian: make deps)"
	return 1
}

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null |
		cut -c 1-2)" = ii ]
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# The packages of $wanted and $optional that are not installed.
missing() {
	for package; do
		installed "$package" || printf ' %s' "$package"
	done
}

# RUNLEVEL keeps daemons from being started where there is no systemd.
apt() {
	as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
		timeout "$apt_seconds" apt-get -q -o Acquire::Retries=2 "$@" >&2
}

# All at once, or, when one of them cannot be had, one by one.
install_optional() {
	# shellcheck disable=SC2086
	packages=$(missing $optional)
	[ -n "$packages" ] || return 0
	say "setup: installing$packages"
	# shellcheck disable=SC2086
	apt install -y --no-install-recommends $packages && return 0
	for package in $packages; do
		apt install -y --no-install-recommends "$package" ||
			say "setup: no $package: what needs it is not tested"
	done
}

install_packages() {
	if ! command -v apt-get >/dev/null 2>&1 ||
	   ! command -v dpkg-query >/dev/null 2>&1; then
		if probe 2>/dev/null; then
			return 0
		fi
		say "setup: no apt here; please install the equivalents of:"
		# shellcheck disable=SC2086
		say $wanted $optional
		return 1
	fi
	# shellcheck disable=SC2086
	packages=$(missing $wanted)
	# shellcheck disable=SC2086
	[ -z "$packages$(missing $optional)" ] && return 0
	if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null 2>&1; then
		say "setup: not root and no sudo; as root: apt-get install$packages"
		[ -z "$packages" ]
		return
	fi
	apt update || say "setup: apt-get update failed; trying the lists there are"
	if [ -n "$packages" ]; then
		say "setup: installing$packages"
		# shellcheck disable=SC2086
		apt install -y --no-install-recommends $packages
	fi
	install_optional
}

apt_seconds=1200
optional=
wanted=
for list in "${@:-build}"; do
	case $list in
	--probe)
		probe
		exit
		;;
	build) wanted="$wanted $build" ;;
	check) wanted="$wanted $check" ;;
	demo) wanted="$wanted $demo" ;;
	long) optional="$optional $long" ;;
	*)
		say "usage: tests/setup.sh [build] [check] [demo] [long] | --probe"
		exit 2
		;;
	esac
done
install_packages
