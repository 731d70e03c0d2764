ebctl instance create guarded --plan aws --wait
replace NAME guarded
