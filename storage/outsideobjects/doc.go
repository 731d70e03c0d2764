// Package outsideobjects records the objects that instances have in other systems, such as a data tenant in the Event Data
// Platform.
//
// A step records an object before the call that creates it, and removes the record after the object is gone. So no crash leaves an
// object that no row names. The rows contain names and IDs, but no secrets. The configuration of Kyma that the Reconciler has is stored
// sealed, so that a renewal of its kubeconfig does not change it. The rows stay after a deletion whose steps could not remove
// the objects.
package outsideobjects
