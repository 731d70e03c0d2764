ebctl instance create explained --plan aws --wait
replace ID explained
replace SHOOT "$(ebctl instance get explained -o jsonpath='{.shootName}')"
