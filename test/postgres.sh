#!/usr/bin/env bash
# Checks that PostgreSQL is available to the tests: as a server in TEST_POSTGRES_DSN, or as binaries on PATH or in /usr/lib/postgresql. As
# root on Debian it installs the missing package. Otherwise it fails with installation instructions.
set -euo pipefail

[[ -n "${TEST_POSTGRES_DSN:-}" ]] && exit 0
command -v initdb postgres >/dev/null && exit 0
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && exit 0

if [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null; then
	echo "installing PostgreSQL for the tests" >&2
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y postgresql >/dev/null && exit 0
fi

cat >&2 <<'HELP'
The tests need PostgreSQL. Either install it (Debian: apt-get install postgresql; macOS: brew install postgresql), or set TEST_POSTGRES_DSN
to postgres://user:password@host:port/database?sslmode=disable. The tests create their databases on that server.
HELP
exit 1
