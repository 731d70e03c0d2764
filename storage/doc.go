// Package storage opens the database of a service, which is PostgreSQL or SQLite, migrates its schema, and runs its statements.
//
// The stores in the subfolders own the tables. ARCHITECTURE.md lists the stores. The broker and the Provisioner both use these
// packages:
//
//   - operations contains the tables of the engine. It implements process.Store.
//   - auditlog stores the audit log, and reports stores the results of periodic reports.
//   - writecheck tests whether the database accepts writes, for the readiness of the service.
//   - sealcount counts the values that were sealed with each key.
//
// Package keyrotation re-encrypts the sealed columns of all stores, and package storagetest opens databases for tests.
//
// # Statements
//
// A store writes each query once, for both databases, with `?` as the placeholder. Exec, Select and Get run it on db.Reader(), on
// db.Writer() for a single writing statement, or on the Tx of DB.InTx or DB.InSnapshot. The few differences between the databases are SQL
// fragments that DB returns, such as SkipLocked. ExecBatch and ExecCTE save round trips on the hot paths.
//
// # Guarantees
//
//   - Each database stores times in one format, see Time.
//   - No call outlives its context by more than a second, even if the server is frozen. Calls without a deadline end after 10 s.
//   - Connections are handed out in the order of the requests.
//   - Errors of both drivers are classified in the same way: ErrNotFound, IsDuplicate and IsUnavailable.
//   - A commit is never canceled. With synchronous replication, a call fails if no standby has confirmed its commit, and other calls do
//     not see the commit until then.
//   - Calls never use a standby: new connections to a standby fail, and connections to a server that became read-only are dropped.
//
// # Versions
//
// Rows have no version number, because migrations bring all rows to the current schema. During an update, replicas of two
// releases share the database. A migration must therefore not break the statements of the preceding release.
//
// Columns with JSON are the exception, such as operations.payload, instances.request, runtimes.configuration, bindings.access and
// audit.entry. Their Go types document the stored format and its versions.
//
// # Usual changes
//
// To add a column or table, add a numbered file to the migrations folder of the store. Never change a migration that was
// released. For a new method, add a call to plans_calls_test.go, which checks the query plans on PostgreSQL. test/upgrade opens
// databases of earlier releases.
package storage
