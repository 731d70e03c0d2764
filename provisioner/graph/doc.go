// Package graph is the GraphQL server of the Provisioner. It limits and parses requests, reads the caller from the headers,
// calls a Service, and converts results and errors to responses that clients of this Provisioner and of Kyma Provisioner
// understand. It makes no decisions about runtimes; package orders does.
//
// ../schema.graphql is the contract. gqlgen generates the executor into package generated and the response types into package
// model; gqlgen.yml binds the input types to package spec. The resolvers are written by hand. docs/contributor/add-a-mutation.md
// lists the steps for a new mutation.
package graph

//go:generate go tool gqlgen generate --config gqlgen.yml
