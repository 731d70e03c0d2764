ebctl instance create my-runtime --plan aws --wait
echo 'autoScalerMin: 3' >parameters.yaml
replace 'ebctl login broker.example.com --username jane --name production' \
	'ebctl login http://127.0.0.1:8080 --username sandbox --name production <<<sandbox'
replace 'ebctl provisioner login provisioner.example.com --username jane' \
	'ebctl provisioner login http://127.0.0.1:3000 --username sandbox <<<sandbox'
replace c-1234567 "$(ebctl instance get my-runtime -o jsonpath='{.shootName}')"
replace ACCOUNT sandbox
