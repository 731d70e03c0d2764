// Package e2e tests broker, Provisioner and garden together, as their users meet them: over the Open Service Broker API.
//
// Tests without a build tag run the services in the process of the test, or the sandbox as a program, on the garden in memory. Those
// with the tag `garden` run every service as a program on the real garden.
package e2e
