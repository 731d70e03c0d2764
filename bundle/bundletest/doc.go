// Package bundletest helps to test the bundle provisioner. Its functions have the build tag garden, because they need an API
// server with the provisioner's CustomResourceDefinitions.
package bundletest
