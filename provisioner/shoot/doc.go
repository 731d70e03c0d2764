// Package shoot builds the Shoot of a cluster from its order. It makes no calls: the same order and options always result in the
// same objects. It expects orders that package validation accepts.
//
// Build creates the objects. Keep merges them with the present Shoot, so that a change does not undo what Gardener, operators or
// users have set meanwhile. A new field of orders usually belongs to build.go or spec.go, and to a golden file of the tests. The
// differences between providers are in aws.go, azure.go, gcp.go and openstack.go.
package shoot
