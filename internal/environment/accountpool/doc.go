// Package accountpool assigns accounts of cloud providers to tenants. An account is a CredentialsBinding (or a SecretBinding) in
// the Gardener project of the clusters. Its labels say which provider it belongs to, which tenant uses it, and whether it is
// shared, reserved for the operators, restricted to the European Union, or waiting for a cleanup.
//
// Rules decide which accounts an instance may use. A tenant gets a separate account for each type of account, or uses an account
// that several tenants share. Pool.Assign assigns an account to an instance, and Pool.Release releases it after the deletion of
// the instance. In between, the instance keeps its account, even while it is suspended.
//
// An assignment is recorded in two places. The first is the claim in the broker's database: unique rows keep two replicas from
// choosing the same account, or two accounts for the same tenant. The second is the binding's tenantName label. It is written
// only if the binding's resource version has not changed since it was read, so that other programs with access to the project
// cannot claim the same account unnoticed. Each method may be interrupted after any write; a repeated call completes the work.
//
// The package depends neither on Kubernetes nor on SQL: Garden and Claims are interfaces.
package accountpool
