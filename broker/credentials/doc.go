// Package credentials renews the kubeconfigs that Lifecycle Manager and the Reconciler have of runtimes. Admin kubeconfigs expire after a
// few hours, so each one is replaced when half of its validity has passed.
//
// It also repairs the Secret with the credentials for SAP Service Manager in runtimes, whose administrators can change or delete it.
package credentials
