// Package accountpool assigns accounts of cloud providers to tenants. An account is a CredentialsBinding (or a SecretBinding) in
// the Gardener project of the clusters; its labels say which provider it belongs to, which tenant uses it, and whether it is
// shared, reserved for the operators, restricted to the European Union, or waits for a cleanup.
//
// Rules decide which accounts an instance may use. A tenant gets one account of its own for each type of account, or uses an
// account that several tenants share. Pool.Assign assigns an account to an instance, and Pool.Release gives it back after the
// deletion of the instance. Between the two, the instance keeps its account, even while it is suspended.
//
// Two places record an assignment. The claims in the broker's database come first: their unique rows keep two replicas from
// choosing the same account, or two accounts for the same tenant. The label tenantName of the binding follows, written under the
// resource version that was read, so that other programs with access to the project cannot claim the same account unnoticed.
// Each method may be interrupted after any write; a repeated call completes the work.
//
// The package knows neither Kubernetes nor SQL: Garden and Claims are interfaces.
package accountpool
