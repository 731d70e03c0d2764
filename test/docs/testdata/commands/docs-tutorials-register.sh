replace platform:PASSWORD sandbox:sandbox
replace https://broker.example.com http://127.0.0.1:8080
replace 'osb "$instance/last_operation"' 'until osb "$instance/last_operation" | grep succeeded; do sleep 0.2; done'
