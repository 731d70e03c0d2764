// Package fakedirector simulates Compass Director and its Connector: the token endpoint, the GraphQL operations that the Provisioner uses, and
// the one-time tokens of runtime agents, with Director's rules and error codes. Faults can be injected. Registered runtimes are kept in
// memory and, optionally, in a file. Another operation goes into schema.graphql and execute.
package fakedirector
