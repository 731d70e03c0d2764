// Package credentials renews the runtime kubeconfigs that Lifecycle Manager and the Reconciler use. Admin kubeconfigs expire
// after a few hours, so each one is replaced when half of its validity has passed. For Lifecycle Manager, a renewal also updates the
// labels of the Secret and of the Kyma resource.
//
// The package also repairs the Secret with the credentials for SAP Service Manager in runtimes, because administrators of a
// runtime can change or delete it.
package credentials
