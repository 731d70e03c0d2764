// Package wire contains the GraphQL requests of package provisionerclient and their types. genqlient generates all other files of
// this package from the Provisioner's schema and ../operations.graphql.
package wire
