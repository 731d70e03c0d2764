// Package runtimeorder turns an instance into the order of a runtime that the Provisioner gets. The same instance gives the same
// order, always: an order that is sent again asks for nothing else.
package runtimeorder
