// Package provisionerclient calls a Provisioner over GraphQL: ours, or the Kyma Provisioner, which has the same
// schema.
//
// It is the edge between the broker's domain and the wire. Package wire holds the generated GraphQL types;
// OrderRuntime and UpgradeRuntime map an environment.Instance to them, and answers are mapped to Operation. To
// send another field of a cluster, add it to newOrder or newUpgrade; to call another mutation, add it to
// operations.graphql and run go generate.
//
// A call is sent once, within its timeout, and never follows a redirect. All calls but Changes pass the
// transport of package upstream, which limits concurrent calls and stops them while the Provisioner does not
// answer.
//
// Errors are of package failure and say what to do next: failure.Permanent and failure.NotFound are the
// Provisioner's decision, failure.Waiting means that another operation of the runtime has to end first, and
// failure.Transient that the same call may succeed later, because the Provisioner did not answer or sent
// something unexpected.
package provisionerclient

//go:generate go tool genqlient genqlient.yaml
