// Package e2e tests broker, Provisioner and garden together through their APIs.
//
// Most tests without a build tag run both services in the process of the test, on the fake garden; some run the sandbox as a
// process. Tests with the tag `garden` run each service as a process, on the local garden. fixture_test.go has the environment in
// the test's process, programs_test.go and killed_programs_test.go start processes, and fleet_test.go starts several replicas of
// each service.
package e2e
