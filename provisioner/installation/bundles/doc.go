// Package bundles implements installation.Installer with a bundle provisioner: each component of a plan becomes a BundleDeployment on the
// hub, which is the cluster of the bundle provisioner.
//
// The content of a component is rendered here, because an order sets its values, and uploaded to the content server: no object on the hub
// contains a value. An HMAC of the content in a label of the template identifies it, so a changed component is another template, and the
// bundle provisioner pivots to it. The key of the HMAC is in the Secret with the kubeconfig of the runtime. It is also in the archive,
// so that nobody can test guesses of a value against the digest of a Bundle.
//
// Each BundleDeployment depends on the one before it in the plan. The first one has the Namespaces that manifests contain, because
// components share them. Names are derived from the runtime and the component, so a call after a crash continues with the same objects.
//
// A write fails if the object was changed after it was read. A replica that was frozen may still create objects of a runtime that was
// removed meanwhile; Keeper removes them, and renews the kubeconfigs.
//
// A cluster on which package installer has installed something stays with it: the inventory of the cluster decides.
package bundles
