// Package fakecontrolplane simulates the API server of the control plane with Lifecycle Manager, for the sandbox and for tests.
//
// It serves the ConfigMaps, Secrets and Kyma resources of all namespaces in the wire format of Kubernetes, to the extent that the
// broker uses it. Reads of a Kyma resource simulate Lifecycle Manager: after a change, the first read returns the state
// Processing, and the next one returns Ready, or Error if there is no Secret with the runtime's kubeconfig. A deleted resource
// still exists for one more read.
package fakecontrolplane
