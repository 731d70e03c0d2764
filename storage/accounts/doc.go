// Package accounts stores which tenant has claimed which account of the account pool, and which instance uses which account. It
// implements accountpool.Claims.
//
// The rows contain tenant labels and the names of CredentialsBindings in Gardener, neither of which is secret.
package accounts
