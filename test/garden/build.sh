#!/usr/bin/env bash
# Builds the local garden into .bin/ of the repository: etcd, kube-apiserver, gardener-apiserver, and garden, which runs them.
# It does not rebuild programs that are up to date. See README.md.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(cd "$here/../.." && pwd)/.bin

kubernetes_version=v1.35.4
kubernetes_flags="-X k8s.io/component-base/version.gitVersion=$kubernetes_version"
kubernetes_flags+=" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35"

# The flags are the same as in the rest of the repository, so that the build cache is shared. Builds are reproducible.
build() { # module, linker flags, commands...
	local module=$1 flags=$2
	shift 2
	(cd "$here/$module" && CGO_ENABLED=0 go build -v -buildvcs=false -trimpath -ldflags "-s -w $flags" -o "$bin/" "${@/#/./}") 2>&1 | progress
}

# progress reads the output of go build -v, which has a line for each compiled package and each downloaded module. It counts these lines and
# prints the counts every ten seconds, even while the linker prints nothing. It passes errors through.
progress() {
	local packages=0 modules=0 printed=$SECONDS line status
	while true; do
		status=0
		IFS= read -r -t 10 line || status=$?
		case "$status:$line" in
		"0:go: downloading "*) modules=$((modules + 1)) ;;
		0:*[[:space:]]* | "0:#"*) echo "$line" >&2 ;;
		0:*) packages=$((packages + 1)) ;;
		esac
		((status == 0 || status > 128)) || return 0 # the build has ended; pipefail reports its status
		if ((SECONDS - printed >= 10)); then
			printed=$SECONDS
			echo "  ${SECONDS}s: $modules modules downloaded, $packages packages compiled" >&2
		fi
	done
}

# fingerprint hashes the inputs of a module's commands: dependencies, the sources of the commands, compiler and flags.
fingerprint() { # module, linker flags, commands...
	local module=$1 flags=$2
	shift 2
	(cd "$here/$module" && { go version; echo "$flags"; cat go.mod go.sum "${@/%//main.go}"; } | sha256sum)
}

# refresh builds commands that are missing or that have a new fingerprint. Running go build to find this out would take seconds.
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
	echo "building the local garden (etcd, kube-apiserver, gardener-apiserver): this takes a few minutes the first time" >&2
	announced=true
}

mkdir -p "$bin"
refresh kubernetes "$kubernetes_flags" etcd kube-apiserver
refresh gardener "" gardener-apiserver
build gardener "" garden # it contains code of the main module, so let go build decide

# go build renews the time even if the program is up to date. With the time of its last change, and without the commit in it, go test reuses the
# results of tests that read it.
sum=$(sha256sum <"$bin/garden")
[[ -f $bin/.garden.sum && $(<"$bin/.garden.sum") == "$sum" ]] || echo "$sum" >"$bin/.garden.sum"
touch -r "$bin/.garden.sum" "$bin/garden"
