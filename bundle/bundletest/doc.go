// Package bundletest helps the tests of the bundle provisioner. With the build tag garden, it starts a kube-apiserver and etcd with
// the CustomResourceDefinitions of the API.
package bundletest
