// Package kymarows creates databases as Kyma Provisioner and Kyma Environment Broker (KEB) of 2023 left them, with rows as these programs
// wrote them, for the tests of `provisioner adopt` and `broker adopt`.
//
// The schemas (provisioner.sql, keb.sql) have the tables, columns and types of these programs, without the tables and constraints that
// adopt does not read.
package kymarows
