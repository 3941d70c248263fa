#!/bin/sh
# Install the packages that building and testing need.
#
#   tests/setup.sh [build] [check] [demo]   install what is missing (apt)
#   tests/setup.sh --probe                  only say in one line what building
#                                           misses; works on any distribution
#
# Needs nothing but sh, and dpkg and apt-get for installing.
set -eu

build='gcc libc6-dev linux-libc-dev make mawk pkg-config zlib1g-dev
libdeflate-dev libjansson-dev libarchive-dev libxxhash-dev libssl-dev libelf-dev
libzydis-dev'
check='bats jq python3 python3-xxhash python3-jsonschema mandoc shellcheck
clang git sqlite3 perl procps file xz-utils zstd zsh fish'
demo='jq'

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
	for lib in zlib jansson libarchive libxxhash libcrypto libelf; do
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

install_packages() {
	if ! command -v apt-get >/dev/null 2>&1 ||
	   ! command -v dpkg-query >/dev/null 2>&1; then
		if probe 2>/dev/null; then
			return 0
		fi
		say "setup: no apt here; please install the equivalents of:"
		# shellcheck disable=SC2086
		say $wanted
		return 1
	fi
	missing=
	for package in $wanted; do
		installed "$package" || missing="$missing $package"
	done
	[ -z "$missing" ] && return 0
	if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null 2>&1; then
		say "setup: not root and no sudo; as root: apt-get install$missing"
		return 1
	fi
	say "setup: installing$missing"
	as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2 ||
		say "setup: apt-get update failed; trying the lists there are"
	# shellcheck disable=SC2086
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -q -y --no-install-recommends $missing >&2
}

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
	*)
		say "usage: tests/setup.sh [build] [check] [demo] | --probe"
		exit 2
		;;
	esac
done
install_packages
