// Package deployments is the controller of BundleDeployments: it creates the Bundle that a template describes, waits until a provisioner
// has unpacked it, and installs its objects on the target cluster.
//
// A pivot to another Bundle begins when that one is unpacked. Its objects are applied, the objects that only the former Bundle has are
// removed, status.activeBundle changes, and then the former Bundle is deleted. If an object is rejected, the objects of the former Bundle
// are applied again, status.activeBundle stays, and the condition Installed has the reason UpgradeFailed. The next attempt waits longer
// after each failure; a new template is tried at once.
//
// Owner references do not cross clusters, so a finalizer removes the objects. It waits at most spec.deletionTimeout. The finalizer has the
// name of the class: when the class of a BundleDeployment changes, the controller of the former class removes its finalizer and
// nothing else. A BundleDeployment that is deleted while it is suspended leaves its objects behind.
//
// A cluster that does not respond makes conditions Unknown, because its objects may be fine. All conditions are set in every pass, with
// the generation that they describe.
package deployments
