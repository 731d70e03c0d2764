// Package provisionerclient asks a Provisioner over GraphQL for runtimes: ours, or a former one that speaks the same schema.
//
// Its errors are of package failure and say what to do next: failure.Permanent and failure.NotFound are the Provisioner's
// decision, failure.Waiting means that another operation of the runtime has to end first, failure.Transient that the same
// call may succeed later, since the Provisioner did not answer or made no sense.
package provisionerclient
