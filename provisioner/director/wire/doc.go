// Package wire contains the requests that package director sends and their types. All files except this one are generated from
// the schema of the simulated Director and ../operations.graphql.
package wire
