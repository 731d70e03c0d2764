#!/usr/bin/env bash
# Records the demo of the README: runs demo.sh against a fresh sandbox in a terminal and renders it as an animated SVG, docs/demo/demo.svg.
# Needs asciinema (Debian: apt-get install asciinema) and npx (Node.js), which fetches svg-term-cli.
set -euo pipefail
cd "$(dirname "$0")/../.."

make --no-print-directory build
work=$(mktemp -d)
export SANDBOX_DIR=$work/data SANDBOX_CLUSTER_CREATION=4s
export SANDBOX_BROKER_ADDRESS=127.0.0.1:18080 SANDBOX_PROVISIONER_ADDRESS=127.0.0.1:13000 SANDBOX_STATUS_ADDRESS=127.0.0.1:18071
: >"$work/sandbox.log"
bin/sandbox >>"$work/sandbox.log" 2>&1 &
sandbox=$!
trap 'kill $sandbox; wait $sandbox || true; rm -rf "$work"' EXIT
until grep -q 'sandbox ready' "$work/sandbox.log"; do
	kill -0 $sandbox || { cat "$work/sandbox.log" >&2; exit 1; }
	sleep 0.2
done

export EBCTL_ADDRESS=http://127.0.0.1:18080 EBCTL_USERNAME=sandbox EBCTL_PASSWORD=sandbox PATH=$PWD/bin:$PATH DEMO_DIR=$work
asciinema rec --quiet --overwrite --cols 118 --rows 30 --idle-time-limit 2 --command docs/demo/demo.sh "$work/demo.cast"
npx --yes svg-term-cli@2.1.1 --in "$work/demo.cast" --out docs/demo/demo.svg --window --no-optimize --width 118 --height 30
