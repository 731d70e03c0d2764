// Package bindings stores the bindings of the broker's service instances.
package bindings
