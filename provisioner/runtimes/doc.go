// Package runtimes does what the GraphQL server is asked for: it accepts operations on runtimes in one transaction each, and tells
// how they stand.
package runtimes
