// Package bundles injects faults into the bundle provisioner. The bundler runs as a program against the kube-apiservers of a hub and of a
// target cluster, with tokens of ServiceAccounts, and a registry. Proxies count its calls. The tests need the build tag garden.
//
// TestKilled ends the bundler with SIGKILL before and after each call, and before each change of its store, and starts it again.
// `make test` runs a random sample of these points. TEST_SEED repeats it, and SOAK_DURATION, which `make soak` sets, runs all. The
// name of a failed test has the scenario and the point. TestLeaderKilled and TestLeaderFrozen stop the leader of three replicas. TestAPIServerRestarts
// ends the API server of the hub or of the target at a point, and TestTargetAway takes the target away for an hour. At the end of each run, the
// following holds:
//
//   - No Bundle is lost. Each one that the BundleDeployment needs exists, is unpacked, and is served with its digest.
//   - All objects are of one version, which activeBundle names.
//   - The inventory lists exactly the objects with the labels of the BundleDeployment.
//   - An active Bundle has been served at every moment at which a replica was running.
//
// TestProvisionerKilled does the same to the Provisioner, which installs the components of a runtime through the bundler: at its calls to the
// hub, also those that only read, and at its uploads. Each component has one BundleDeployment with one Bundle, and a removal leaves nothing.
package bundles
