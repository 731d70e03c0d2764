// Package provisionerclient calls a Provisioner over GraphQL: either ours or the Kyma Provisioner, whose schema ours extends.
//
// The package maps the broker's domain types to the GraphQL API. Package wire contains the generated GraphQL types. OrderRuntime
// and UpgradeRuntime convert an environment.Instance to these types, and responses are converted to Operation. To send another
// field of a cluster, add it to newOrder or newUpgrade. To call another mutation, add it to operations.graphql and run go
// generate.
//
// A call is sent once, has a timeout, and never follows a redirect. All calls except Changes use the transport of package
// upstream, which limits concurrent calls and rejects calls while the Provisioner does not respond.
//
// Errors carry a failure.Kind, which says how to react. failure.Permanent and failure.NotFound are decisions of the Provisioner.
// failure.Waiting means that another operation of the runtime has to end first. failure.Transient means that the Provisioner did
// not respond or sent an unexpected response, so the same call may succeed later.
package provisionerclient

//go:generate go tool genqlient genqlient.yaml
