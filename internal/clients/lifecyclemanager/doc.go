// Package lifecyclemanager hands runtimes over to Kyma's Lifecycle Manager, which installs and updates the modules of a runtime.
//
// Lifecycle Manager watches the control plane. A runtime has two objects there: a Secret with an admin kubeconfig, and a Kyma
// resource with the channel and the modules. The names of both are derived from the runtime ID, so every call is idempotent.
package lifecyclemanager
