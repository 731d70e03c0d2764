// Package fakedirector simulates Compass Director and its Connector: the token endpoint, the GraphQL operations that the Provisioner uses, and
// the one-time tokens of runtime agents, with Director's rules and error codes. Faults can be injected. Registered runtimes are kept in
// memory and, optionally, in a file. Another operation goes into schema.graphql and execute.
//
// The schema is the contract: a request that does not fit it fails like at the real Director. Operations are executed one at a time. A change
// is in the file before the response is sent, so a client never knows a runtime that a restarted Director does not know.
package fakedirector
