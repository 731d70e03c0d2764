// Package deployments is the BundleDeployment controller. It creates the Bundle that a template describes, waits until a
// provisioner has unpacked it, and installs its objects on the target cluster.
//
// A pivot to another Bundle begins once that Bundle is unpacked. The controller applies its objects, removes the objects that
// only the previous Bundle contains, changes status.activeBundle, and then deletes the previous Bundle. If an object is rejected,
// the objects of the previous Bundle are applied again, status.activeBundle stays, and the Installed condition has the reason
// UpgradeFailed. The pause before the next attempt grows with each failure. A new template is tried immediately.
//
// Owner references do not cross clusters, so the controller uses a finalizer. It removes the objects first, and waits at most
// spec.deletionTimeout until they are gone. The name of the finalizer contains the class: when the class of a BundleDeployment
// changes, the controller of the previous class only removes its own finalizer and leaves the objects in place. A
// BundleDeployment that is deleted while it is suspended leaves its objects behind.
//
// If a cluster does not respond, conditions become Unknown, because the objects on the cluster may still be healthy. Every
// reconciliation sets all conditions and the generation that they describe.
package deployments
