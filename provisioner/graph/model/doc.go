// Package model holds the response types of the GraphQL API. gqlgen generates schema.go from ../../schema.graphql; do not edit
// it. An optional field is a pointer, and nil stands for null. The types of orders, which responses repeat, are in package spec.
package model
