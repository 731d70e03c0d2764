#!/usr/bin/env bash
# Checks that the tests of test/ha find Patroni, etcd, HAProxy and PgBouncer, and TestBackup in test/e2e sqlite3. As root on Debian it installs the missing packages.
# Otherwise it fails and explains how to install them. PostgreSQL itself comes from test/postgres.sh.
set -euo pipefail

PATH="$PATH:/usr/sbin"
packages=()
for each in patroni:patroni etcd:etcd-server haproxy:haproxy pgbouncer:pgbouncer sqlite3:sqlite3; do
	command -v "${each%%:*}" >/dev/null || packages+=("${each#*:}")
done
[[ ${#packages[@]} == 0 ]] && exit 0

if [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null; then
	echo "installing ${packages[*]} for the tests" >&2
	# The packages may start servers. The tests do not use them, and use other ports.
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${packages[@]}" \
		>/dev/null && exit 0
fi

cat >&2 <<HELP
The tests need Patroni, etcd, HAProxy, PgBouncer and sqlite3. Missing: ${packages[*]}. Install them; on Debian and Ubuntu:
apt-get install --no-install-recommends patroni etcd-server haproxy pgbouncer sqlite3
HELP
exit 1
