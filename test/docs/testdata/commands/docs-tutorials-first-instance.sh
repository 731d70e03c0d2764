replace 'make build' true
replace 'osb "$instance/last_operation"' 'osb "$instance/last_operation" | grep "in progress\|succeeded"'
