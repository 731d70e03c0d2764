ebctl instance create bound --plan aws --wait
replace OLD_BINDING_ID '$(ebctl binding list my-runtime -o name | head -1)'
replace my-runtime bound
