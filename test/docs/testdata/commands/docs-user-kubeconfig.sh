ebctl instance create people --plan aws --wait
replace INSTANCE_ID "$(id_of people)"
replace NAME people
