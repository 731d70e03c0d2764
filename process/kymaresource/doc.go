// Package kymaresource contains the steps that hand a runtime over to Lifecycle Manager: they write the runtime's Kyma resource
// and a Secret with its kubeconfig to the control plane, and wait until Lifecycle Manager has installed Kyma. The processes
// provisioning, update and upgradekyma share these steps. Package deprovisioning removes the objects.
package kymaresource
