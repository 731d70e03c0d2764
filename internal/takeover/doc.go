// Package takeover contains the code that `provisioner adopt` and `broker adopt` share. These commands take over the rows of Kyma
// Provisioner and of Kyma Environment Broker (KEB), as released in 2023. The package reads their PostgreSQL databases, decrypts the
// columns, checks that the former programs have stopped, and formats the report.
//
// The package never writes to a former database: its session is read-only. Each service converts the rows to its own.
package takeover
