# Functions for the scripts of the pages, and a curl that fails for statuses from 400 on.
replace() { printf '%s\t%s\n' "$1" "$2" >>replacements; }
curl() { command curl --fail-with-body --max-time 60 "$@"; }
id_of() { ebctl instance get "$1" -o name; }
# fetch sends a GraphQL request, prints the response, keeps it in the file answer, and fails if it has errors.
fetch() {
	curl -sS "$@" | tee answer
	! grep -q '"errors"' answer
}
settled() { until status | grep Succeeded; do sleep 0.2; done; }
