// Package kymaresource contains the steps that hand a runtime over to Lifecycle Manager: they write the Secret with its
// kubeconfig and its Kyma resource to the control plane, and wait until Lifecycle Manager has installed Kyma. The processes
// provisioning, update and upgradekyma share these steps. Package deprovisioning removes the objects.
package kymaresource
