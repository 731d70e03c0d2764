// Package model holds the types of answers of the GraphQL API. gqlgen generates schema.go from ../../schema.graphql; an optional
// field is a pointer and nil for null. The types of orders are in package spec.
package model
