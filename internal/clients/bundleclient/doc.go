// Package bundleclient reads Bundles and BundleDeployments from the API server of the bundle provisioner. It changes nothing.
package bundleclient
