ebctl instance create my-runtime --plan aws --wait
echo 'autoScalerMin: 3' >parameters.yaml
replace 'ebctl login broker.example.com --username jane --name production' \
	'ebctl login http://127.0.0.1:8080 --username sandbox --name production <<<sandbox'
