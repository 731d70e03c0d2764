// Package service assembles the bundle provisioner: the controllers, the sources, the store and the content server.
//
// All replicas serve content. The controllers run in the replica that is elected leader.
package service
