// Package gardenclient is the broker's client for Gardener: it reads and labels the accounts of the account pool, and finds the
// Shoots that use them. It implements accountpool.Garden.
//
// The accounts are CredentialsBindings, or SecretBindings in landscapes that have only those. The client does not use Gardener's
// types but decodes only the fields that it needs, because a list of complete Shoots would be the largest object in the broker's
// memory. It changes labels with merge patches that contain the resource version, so it never overwrites other fields or other
// programs' changes.
package gardenclient
