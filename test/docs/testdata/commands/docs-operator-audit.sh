ebctl instance create audited --plan aws --wait
replace NAME audited
replace ENTRY '$(ebctl audit list --limit 1 -o name)'
replace ID "$(id_of audited)"
