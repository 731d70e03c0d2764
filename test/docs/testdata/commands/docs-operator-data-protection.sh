ebctl instance create erasable --plan aws --organization my-account --wait
ebctl instance delete erasable --wait
replace ACCOUNT my-account
