// Package deployments is the BundleDeployment controller. It creates the Bundle that a template describes, waits until a provisioner has
// unpacked it, and installs its objects on the target cluster.
//
// A pivot to another Bundle begins once that Bundle is unpacked. The controller applies its objects, removes the objects that only the
// former Bundle contains, changes status.activeBundle, and then deletes the former Bundle. If an object is rejected, the objects of the
// former Bundle are applied again, status.activeBundle stays, and the condition Installed has the reason UpgradeFailed. The pause before
// the next attempt grows with each failure. A new template is tried immediately.
//
// Owner references do not cross clusters, so a finalizer removes the objects. It waits at most spec.deletionTimeout. The name of the
// finalizer contains the class: when the class of a BundleDeployment changes, the controller of the former class removes its finalizer
// and nothing else. A BundleDeployment that is deleted while it is suspended leaves its objects behind.
//
// A cluster that does not respond makes conditions Unknown, because its objects may be fine. All conditions are set in every pass, with
// the generation that they describe.
package deployments
