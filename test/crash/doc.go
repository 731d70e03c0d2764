// Package crash runs the processes of both services in the crash matrix of package crashtest.
//
// Each registered process has a scenario in broker_test.go or provisioner_test.go; TestEveryRegisteredProcessHasAScenario fails
// otherwise. The background work that changes other systems has scenarios in broker_test.go and kyma_resource_test.go: renewals of
// kubeconfigs, repairs of credentials, and the cleanup of accounts. background_test.go connects this work to the proxies. The
// scenarios run in fake time, with the stores of the services and simulated upstreams.
package crash
