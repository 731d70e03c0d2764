ebctl instance create expiring --plan trial --wait
replace NAME expiring
replace ID "$(id_of expiring)"
