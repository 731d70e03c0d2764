// Package model contains the response types of the GraphQL API. gqlgen generates schema.go from ../../schema.graphql; do not
// edit it. An optional field is a pointer, and nil is encoded as null. Responses also contain the types of orders, which are in
// package spec.
package model
