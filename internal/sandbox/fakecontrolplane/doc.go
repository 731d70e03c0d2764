// Package fakecontrolplane simulates the API server of the control plane with Lifecycle Manager, for the sandbox and for tests.
//
// It serves the ConfigMaps, Secrets and Kyma resources of all namespaces in the wire format of Kubernetes, as far as the broker uses it.
// Lifecycle Manager is simulated by the reads of a Kyma resource: the first one after a change returns the state Processing, the next
// one Ready. A deleted resource exists for one more read.
package fakecontrolplane
