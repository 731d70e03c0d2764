// Package bundle groups the bundle provisioner: controllers that unpack Bundles and install them on clusters through
// BundleDeployments. It has no code of its own. The bundle provisioner knows neither the broker nor the Provisioner.
package bundle
