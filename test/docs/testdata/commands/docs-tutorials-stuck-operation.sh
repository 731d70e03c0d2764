curl -sS -d '{"operation": "createEvaluation", "status": 400, "times": 1}' http://127.0.0.1:43210/simulators/avs/faults
! ebctl instance create fourth --plan aws --wait
replace 'bin/ebctl operation list --stuck' \
	'for name in second third; do until bin/ebctl operation list --stuck | grep $name; do sleep 0.2; done; done'
