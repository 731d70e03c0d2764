// Package failure is the one vocabulary for errors: what they mean (kind), where they happened (component), why (reason),
// what a user reads (text), and what the log gets besides (cause). One table maps the kind to OSB, GraphQL, REST and retry.
package failure
