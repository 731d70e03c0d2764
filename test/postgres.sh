#!/usr/bin/env bash
# Checks that the tests find PostgreSQL: a server in TEST_POSTGRES_DSN, or binaries on PATH or in Debian's folder. As root on Debian it
# installs the missing package. Otherwise it fails and explains how to install PostgreSQL.
set -euo pipefail

[[ -n "${TEST_POSTGRES_DSN:-}" ]] && exit 0
command -v initdb postgres >/dev/null && exit 0
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && exit 0

if [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null; then
	echo "installing PostgreSQL for the tests" >&2
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y postgresql >/dev/null && exit 0
fi

cat >&2 <<'HELP'
The tests need PostgreSQL. Either install it (Debian: apt-get install postgresql; macOS: brew install postgresql), or set
TEST_POSTGRES_DSN=postgres://user:password@host:port/database?sslmode=disable. Tests create databases on this server.
HELP
exit 1
