// Package hostile tests that both services refuse hostile requests on every route and every field of the GraphQL API: with a short
// response, without an internal error, and without writing anything except audit entries. The benchmark in this package compares the
// CPU time for such requests with that of decoding a plain body; tests in other packages count the work for them.
package hostile
