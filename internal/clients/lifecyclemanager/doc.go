// Package lifecyclemanager hands runtimes over to Lifecycle Manager of Kyma, which installs and updates the modules of a runtime.
//
// Lifecycle Manager watches the control plane. A runtime has two objects there: a Secret with an admin kubeconfig, and a Kyma
// resource with the channel and the modules. The names of both derive from the ID of the runtime, so every call is idempotent.
package lifecyclemanager
