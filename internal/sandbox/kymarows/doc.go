// Package kymarows creates databases like the ones of Kyma Provisioner and Kyma Environment Broker (KEB), as released in 2023,
// with rows in the form in which these programs wrote them. The tests of `provisioner adopt` and `broker adopt` use it.
//
// The schemas (provisioner.sql, keb.sql) contain the tables, columns and types of these programs, except tables and constraints
// that the adopt commands do not need.
package kymarows
