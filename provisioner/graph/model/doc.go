// Package model holds the types of the Provisioner's GraphQL schema: what is ordered and what is told about runtimes and
// operations. schema.go is generated from ../../schema.graphql; an optional field is a pointer, nil when it was left out.
package model
