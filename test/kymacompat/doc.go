// Package kymacompat tests compatibility with Kyma Environment Broker and the Kyma Provisioner, the predecessors of this project.
// An installation must be able to replace one of them at a time:
//
//   - Requests from Kyma Environment Broker, recorded in testdata, work with our Provisioner.
//   - Our broker works with the Kyma Provisioner, which package provisioner in this folder simulates.
//   - Our GraphQL schema accepts every request that the Kyma schema accepts, and returns no value that existing clients cannot decode.
package kymacompat
