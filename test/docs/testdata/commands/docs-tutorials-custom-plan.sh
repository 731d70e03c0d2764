replace 'bin/ebctl catalog' 'until bin/ebctl catalog | grep metal; do sleep 0.5; done'
replace 'bin/ebctl doctor | grep catalog' 'until { bin/ebctl doctor || true; } | grep "catalog.*failed"; do sleep 0.5; done'
