replace platform:PASSWORD sandbox:sandbox
replace https://broker.example.com http://127.0.0.1:8080
