ebctl instance create shared --plan aws --wait
replace NAME shared
