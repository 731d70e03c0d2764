ebctl instance create explained --plan aws --wait
replace ID explained
