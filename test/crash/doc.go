// Package crash runs the processes of both services in the crash matrix of package crashtest.
//
// Each registered process has a scenario in broker_test.go or provisioner_test.go; TestEveryRegisteredProcessHasAScenario fails
// otherwise. The scenarios run in fake time, with the stores of the services and simulated upstreams.
package crash
