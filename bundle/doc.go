// Package bundle groups the packages of the bundle provisioner, whose controllers unpack Bundles and install them on clusters
// through BundleDeployments. It has no code of its own; regressions_test.go lists the tests for known defects of other bundle
// provisioners. The bundle provisioner does not depend on the broker or the Provisioner.
package bundle
