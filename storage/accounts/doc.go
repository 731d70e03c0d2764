// Package accounts stores which tenant has claimed which account of the account pool, and which instance uses which account. It
// implements accountpool.Claims.
//
// The rows contain the labels of tenants and the names of bindings in Gardener. Neither is secret.
package accounts
