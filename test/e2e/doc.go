// Package e2e tests broker, Provisioner and garden together through their APIs.
//
// Tests without a build tag run both services in the test process, on the fake garden; a few run the sandbox as a separate
// process. Tests with the build tag `garden` run each service as a process, on the local garden. fixture_test.go has the
// environment for the test process, programs_test.go and killed_programs_test.go start processes, and fleet_test.go starts
// several replicas of each service.
package e2e
