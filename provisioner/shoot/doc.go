// Package shoot builds the Shoot of a cluster from its order. It makes no calls: the same order and options always result in the
// same objects. It expects orders that package validation accepts.
//
// Build creates the objects. Keep merges them with the current Shoot, so that a change does not undo settings that Gardener,
// operators or users have changed in the meantime. A new field of orders usually belongs in build.go or spec.go, and in one of
// the tests' golden files. The differences between providers are in aws.go, azure.go, gcp.go and openstack.go.
package shoot
