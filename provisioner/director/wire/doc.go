// Package wire holds the requests that package director sends and the types that they carry. All but this file is made of the
// schema of the simulated Director and ../operations.graphql.
package wire
