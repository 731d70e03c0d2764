// Package takeover contains what `provisioner adopt` and `broker adopt` share: they take over the rows of Kyma Provisioner and of Kyma
// Environment Broker (KEB) of 2023. It reads their PostgreSQL databases, decrypts their columns, checks that the former programs have
// stopped, and formats the report.
//
// The package never writes to a former database: its session is read-only. Each service maps the rows to its own.
package takeover
