// Package wire holds the requests that package provisionerclient sends and the types that they carry. genqlient generates all other files
// of this package from the Provisioner's schema and ../operations.graphql.
package wire
