// Package bundletest helps to test the bundle provisioner. With the build tag garden, it can start etcd and a kube-apiserver that
// serves the provisioner's CustomResourceDefinitions.
package bundletest
