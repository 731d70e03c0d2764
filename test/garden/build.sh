#!/usr/bin/env bash
# Builds the local garden into .bin/ of the repository: etcd, kube-apiserver, gardener-apiserver, and garden, which runs them.
# Up-to-date programs are not built again. See README.md.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(cd "$here/../.." && pwd)/.bin

kubernetes_version=v1.35.4
kubernetes_flags="-X k8s.io/component-base/version.gitVersion=$kubernetes_version"
kubernetes_flags+=" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35"

# The flags are those of the whole repository, to share the build cache. The result does not depend on the time and the place of the build.
build() { # module, linker flags, commands...
	local module=$1 flags=$2
	shift 2
	(cd "$here/$module" && CGO_ENABLED=0 go build -v -trimpath -ldflags "-s -w $flags" -o "$bin/" "${@/#/./}") 2>&1 | progress
}

# progress reads the output of go build -v, which has a line for each compiled package and each downloaded module. It counts these lines and
# prints the counts every ten seconds, also while the linker is silent. Errors pass through.
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

# fingerprint hashes the inputs of the commands of a module: dependencies, their own sources, compiler, flags.
fingerprint() { # module, linker flags, commands...
	local module=$1 flags=$2
	shift 2
	(cd "$here/$module" && { go version; echo "$flags"; cat go.mod go.sum "${@/%//main.go}"; } | sha256sum)
}

# refresh builds commands that are missing or whose fingerprint has changed. Running go build for that would take seconds.
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
	echo "building the local garden (etcd, kube-apiserver, gardener-apiserver): some minutes the first time" >&2
	announced=true
}

mkdir -p "$bin"
refresh kubernetes "$kubernetes_flags" etcd kube-apiserver
refresh gardener "" gardener-apiserver
build gardener "" garden # it contains code of the main module, so go decides
