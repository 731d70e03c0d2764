// Package shoot builds the Shoot of a cluster from its order. It is pure: the same order and options give the same objects. It
// expects orders that package validation accepts.
//
// Build creates the objects; Keep merges a changed Shoot with the present one. The files aws.go, azure.go, gcp.go and
// openstack.go hold what differs between providers.
package shoot
