// Package kymacompat tests compatibility with the system that this project succeeds. Requests of Kyma Environment Broker, recorded in
// testdata, work with our Provisioner; our broker works with the Kyma Provisioner, which package provisioner here simulates; and our
// GraphQL schema keeps the contract of the Kyma schema.
package kymacompat
