// Package takeover contains the code that `provisioner adopt` and `broker adopt` share. These commands take over the rows of Kyma
// Provisioner and of Kyma Environment Broker (KEB), as released in 2023, which this package calls former programs. The package
// reads their PostgreSQL databases, decrypts the encrypted columns, checks that the former programs have stopped, and formats the
// report.
//
// The package never writes to a former database: its session is read-only. The adopt packages of the two services convert the
// rows to their own.
package takeover
