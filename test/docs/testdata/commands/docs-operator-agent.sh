replace 'curl -sS -H' 'fetch -H'
replace 'runtime=…     # the runtimeID of the answer' 'runtime=$(grep -o "\"runtimeID\":\"[^\"]*" answer | cut -d\" -f4)'
replace 'status        # Pending, and a few seconds later Connected' 'settled; until status | grep Connected; do sleep 0.2; done'
replace 'status        # ReconnectRuntime, which succeeds when the agent has reconnected; the connection status is cached for 5 s' settled
