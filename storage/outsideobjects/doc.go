// Package outsideobjects records the objects that instances have in other systems, such as a data tenant in the Event Data
// Platform.
//
// A step records an object before the call that creates it, and removes the record after the object is gone. A crash thus never
// leaves an object without a record. The rows contain names and IDs, but no secrets. The Kyma configuration that was sent to the
// Reconciler is stored in sealed form, because each renewal of the kubeconfig must send the same configuration again. If the steps
// of a deletion cannot remove the objects, the rows stay.
package outsideobjects
