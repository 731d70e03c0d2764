replace 'curl -sS -H' 'fetch -H'
replace runtime=… 'runtime=$(grep -o "\"runtimeID\":\"[^\"]*" answer | cut -d\" -f4)'
replace 'status        # Pending' 'settled; until status | grep Connected; do sleep 0.2; done # Pending'
replace 'status        # ReconnectRuntime' 'settled # ReconnectRuntime'
