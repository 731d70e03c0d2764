// Package fakedirector simulates Director: the token endpoint and the GraphQL operations that the Provisioner uses, with the same forms,
// rules and error codes, and with faults to order. What is registered is kept in memory and, if wanted, in a file.
package fakedirector
