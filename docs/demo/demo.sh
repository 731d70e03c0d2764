#!/usr/bin/env bash
# The commands of the README's demo, typed with pauses. record.sh runs it against a sandbox.
set -euo pipefail
cd "$DEMO_DIR"

run() {
	printf '\033[1;32m$\033[0m '
	local i
	for ((i = 0; i < ${#1}; i++)); do
		printf '%s' "${1:i:1}"
		sleep 0.02
	done
	printf '\n'
	eval "$1"
	sleep 1.5
}

run 'ebctl instance create first --plan aws --wait'
run 'ebctl instance list'
run 'ebctl instance kubeconfig first --output-file first.kubeconfig'
operation=$(ebctl operation list -o json | sed -n 's/.*"operationID": *"\([^"]*\)".*/\1/p' | head -1)
run "ebctl operation explain $operation | head -16"
run 'ebctl instance delete first --wait'
