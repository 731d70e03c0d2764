// Package e2e tests broker, Provisioner and garden together through their APIs.
//
// Tests without a build tag run the services in the process of the test, or the sandbox as a process, on the fake garden. Those
// with the tag `garden` run every service as a process on the local garden.
package e2e
