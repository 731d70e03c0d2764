// Package bundleclient reads Bundles and BundleDeployments from the bundle provisioner's API server. It never changes them.
package bundleclient
