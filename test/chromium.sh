#!/usr/bin/env bash
# Checks that Chromium or Chrome is available to the tests of the console, as CHROMIUM or on PATH. As root on Debian it installs the missing
# package. Otherwise it fails with installation instructions.
set -euo pipefail

for name in ${CHROMIUM:-} chromium chromium-browser google-chrome; do
	command -v "$name" >/dev/null && exit 0
done

if [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null; then
	echo "installing Chromium for the tests" >&2
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium >/dev/null && exit 0
fi

cat >&2 <<'HELP'
The tests of the console need Chromium. Either install it (Debian: apt-get install chromium; macOS: brew install --cask chromium), or set
CHROMIUM to the path of Chromium or Chrome.
HELP
exit 1
