// Package bundles implements installation.Installer with a bundle provisioner: each component of a plan becomes a BundleDeployment on the
// hub, which is the cluster of the bundle provisioner.
//
// Each order sets its own values for a component. This package therefore renders the content of the component and uploads the
// content to the content server. No object on the hub contains a value. An HMAC of the content, in a label of the template,
// identifies the content. A changed component therefore has a different template, and the bundle provisioner pivots to the new
// content. The HMAC key is in the Secret with the runtime's kubeconfig. The archive contains the key too, so that nobody can test
// guesses of a value against the digest of a Bundle.
//
// Each BundleDeployment depends on the previous one in the plan. The first one contains the Namespaces from the manifests, because
// components share them. Names are derived from the runtime and the component, so a call after a crash continues with the same objects.
//
// A write fails if the object has changed since it was read. A replica that was frozen may still create objects of a runtime that has
// been removed in the meantime. Keeper removes such objects. It also renews the kubeconfigs.
//
// Package installer remains in charge of each cluster on which it has installed something. The inventory in the cluster shows this.
package bundles
