// Package fakedirector simulates Compass Director and the Connector: the token endpoint, the GraphQL operations that the
// Provisioner uses, and the one-time tokens of runtime agents, with Director's validation rules and error codes. Tests can inject
// faults. Registered runtimes are kept in memory and, optionally, in a file. To add an operation, extend schema.graphql and
// execute.
//
// The schema is the contract: a request that does not match it fails as with the real Director. Operations run one at a time.
// Every change is written to the file before the response is sent, so no acknowledged change is lost in a restart.
package fakedirector
