// Package wire holds the requests that package provisionerclient sends and the types that they carry. All but
// this file is generated from the Provisioner's schema and ../operations.graphql.
package wire
