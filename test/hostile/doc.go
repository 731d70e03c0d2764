// Package hostile tests that both services refuse hostile requests on every route and every field of the GraphQL API: with a short
// response, without an internal error, and without writing anything except audit entries. Tests of the packages count the work for
// such requests; the benchmark of this package compares its CPU time with that of decoding a plain body.
package hostile
