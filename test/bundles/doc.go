// Package bundles injects faults into the bundle provisioner. The bundler runs as a separate process. It calls a registry and the
// kube-apiservers of a hub and a target cluster, and authenticates to the latter with ServiceAccount tokens. Proxies count its
// calls. The tests need the garden build tag.
//
// TestKilled kills the bundler with SIGKILL before and after each call, and before each change of its store, and restarts it.
// `make test` tests a random sample of these points, which TEST_SEED reproduces. `make soak` sets SOAK_DURATION, so that all
// points are tested. The name of a failed subtest contains the scenario and the point. TestLeaderKilled and TestLeaderFrozen stop
// the leader of three replicas. TestAPIServerRestarts stops the API server of the hub or the target at such a point, and
// TestTargetAway makes the target unreachable for an hour. At the end of each run, the following holds:
//
//   - No Bundle is lost. Each one that the BundleDeployment needs exists, is unpacked, and is served with its digest.
//   - All objects have the version of the Bundle named in activeBundle.
//   - The inventory lists exactly the objects with the labels of the BundleDeployment.
//   - An active Bundle has been served at every moment at which a replica was running.
//
// TestProvisionerKilled kills the Provisioner in the same way while it installs the components of a runtime through the bundler:
// at each of its calls to the hub, including reads, and at each upload. Afterwards, each component has one BundleDeployment with
// one Bundle, and a removal leaves nothing behind.
package bundles
