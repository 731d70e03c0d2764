// Package reconciler registers runtimes in the Reconciler (Kyma's mothership reconciler), which installs Kyma on them.
//
// A registration is a cluster, named by the ID of the runtime, with a configuration of Kyma. The Reconciler assigns versions to
// configurations. Apply can be repeated: the Reconciler recognizes an equal cluster with an equal configuration, also if the kubeconfig
// differs, and returns the same versions. Remove can be repeated, too.
package reconciler
