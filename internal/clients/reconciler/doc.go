// Package reconciler registers runtimes in the Reconciler (Kyma's mothership reconciler), which installs Kyma on them.
//
// A registration is a cluster, named after the runtime ID, with a Kyma configuration. The Reconciler assigns versions to
// configurations. Apply and Remove are idempotent: if the cluster and its configuration have not changed, the Reconciler returns
// the same versions, even if the kubeconfig differs.
package reconciler
