#!/usr/bin/env bash
# Builds the real garden into .bin/ of the repository: etcd and kube-apiserver, gardener-apiserver, and garden, which runs them.
# What is there and up to date is left alone. README.md beside this script tells what it is for.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(cd "$here/../.." && pwd)/.bin

kubernetes_version=v1.35.4
kubernetes_flags="-X k8s.io/component-base/version.gitVersion=$kubernetes_version"
kubernetes_flags+=" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35"

# The same flags for everything, here and elsewhere, or the build cache is not shared. Nothing depends on when or where it is built.
build() { # module, linker flags, commands...
	local module=$1 flags=$2
	shift 2
	(cd "$here/$module" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $flags" -o "$bin/" "${@/#/./}")
}

# fingerprint says of what a module's commands are made: the versions of its dependencies, their own sources, the compiler, the flags.
fingerprint() { # module, linker flags, commands...
	local module=$1 flags=$2
	shift 2
	(cd "$here/$module" && { go version; echo "$flags"; cat go.mod go.sum "${@/%//main.go}"; } | sha256sum)
}

# refresh builds commands whose fingerprint has changed or that are missing. Asking go itself takes seconds.
refresh() { # module, linker flags, commands...
	local module=$1 stamp="$bin/.$1.stamp" made command
	made=$(fingerprint "$@")
	local current=true
	for command in "${@:3}"; do
		[[ -x $bin/$command ]] || current=false
	done
	[[ -f $stamp && $(<"$stamp") == "$made" ]] || current=false
	$current && return
	announce
	build "$@"
	echo "$made" >"$stamp"
}

announced=false
announce() {
	$announced && return
	echo "building the real garden (etcd, kube-apiserver, gardener-apiserver): some minutes the first time" >&2
	announced=true
}

mkdir -p "$bin"
refresh kubernetes "$kubernetes_flags" etcd kube-apiserver
refresh gardener "" gardener-apiserver
build gardener "" garden # it contains code of the main module; go knows best whether that has changed
