replace 'make build' true
replace ID_OF_AN_OPERATION first
replace 'osb "$instance/last_operation"                # repeat until the state is succeeded' \
	'until osb "$instance/last_operation" | grep succeeded; do sleep 0.2; done'
replace 'osb "$instance/last_operation"                # repeat until the instance is deleted: the state is succeeded' \
	'while osb "$instance"; do sleep 0.2; done'
