// Package hostile tests that both services refuse hostile requests on every route and every field of the GraphQL API: with a
// short response, without an internal error, and without writing anything except audit entries. The benchmark in this package
// compares the CPU time for hostile requests with that for decoding a plain body. Tests in other packages count the work for
// hostile requests.
package hostile
