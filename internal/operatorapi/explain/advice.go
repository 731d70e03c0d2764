package explain

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/timetext"
	"github.com/environment-broker/environment-broker/process"
)

// situation is the input of all rules: an operation and the time of its explanation.
type situation struct {
	operatorapi.Operation

	now time.Time
	// provisioner is true for an operation of the Provisioner.
	provisioner bool
}

func (s situation) is(state process.State) bool { return process.State(s.State) == state }

// failing reports whether an error delays the operation or has made it fail.
func (s situation) failing() bool { return s.Problem.Message != "" }

// active reports whether the operation has started and not ended. A pending operation is not active.
func (s situation) active() bool { return !process.State(s.State).Terminal() && !s.is(process.Pending) }

// stuck reports whether an operator may need to intervene: an error delays the operation, or the first attempt of its current
// step started at least process.TooLong ago. A canceling operation is not stuck, because it will end without intervention.
func (s situation) stuck() bool {
	start := since(s.Operation)

	return s.is(process.InProgress) && (s.failing() || !start.IsZero() && s.now.Sub(start) >= process.TooLong)
}

// repeatsLong is the time after which an unchanged message is suspicious. Most clusters are created in less time. During the
// creation, the message changes more often, because it contains the percentage that the Provisioner reports.
const repeatsLong = 30 * time.Minute

// repeats returns how long the current step has reported its newest message, according to the timeline. It returns 0 if the step
// has no message or if the operation is not active.
func (s situation) repeats() time.Duration {
	if len(s.Timeline) == 0 || !s.active() {
		return 0
	}

	newest := s.Timeline[len(s.Timeline)-1]
	if newest.Message == "" || newest.Step != s.Step {
		return 0
	}

	first := newest.Began

	for _, entry := range slices.Backward(s.Timeline) {
		if entry.Step != newest.Step || entry.Message != newest.Message {
			break
		}

		first = entry.Began
	}

	return s.now.Sub(first)
}

// repeating reports whether the current step has reported the same message for at least repeatsLong.
func (s situation) repeating() bool { return s.repeats() >= repeatsLong }

// responds reports whether the upstream system that caused the problem is available. If so, its responses describe the problem.
func (s situation) responds() bool {
	return s.System.Name != "" && !unavailable(s.System) && s.System.Failures == 0
}

// Stuck reports whether an operation in a list needs attention: it is in progress, and an error delays it, no worker has claimed
// it for a minute, or it started at least an hour ago. List entries have no timeline, so the duration of the current step is
// unknown.
func Stuck(operation operatorapi.Operation, now time.Time) bool {
	s := situation{Operation: operation, now: now}
	long := !operation.StartedAt.IsZero() && now.Sub(operation.StartedAt) >= process.TooLong

	return s.is(process.InProgress) && (s.failing() || long || due(operation, now.Add(-process.Overdue)))
}

// retried reports whether an operator has retried the operation. The broker allows one retry per operation and records it in the
// timeline of the failed operation.
func (s situation) retried() bool {
	return slices.ContainsFunc(s.Timeline, func(entry operatorapi.TimelineEntry) bool {
		return process.Outcome(entry.Outcome) == process.Retried
	})
}

// mayRetry reports whether the state of the operation is the given one, failed or canceled, and operators can retry it: its kind can be
// retried, and it is the newest operation of its instance.
func (s situation) mayRetry(state process.State) bool {
	return s.is(state) && !s.retried() && s.LaterOperationID == "" && environment.Retryable(s.Kind)
}

// failed reports whether the operation failed and can be retried.
func (s situation) failed() bool { return s.mayRetry(process.Failed) }

// begun reports whether the operation or one that it retries has started.
func (s situation) begun() bool { return !s.StartedAt.IsZero() || s.PredecessorID != "" }

// leavesCluster reports whether the operation is of one of the given kinds, which create a cluster, and was canceled after it or an operation
// that it retries had started. It is false if the instance has a later operation.
func (s situation) leavesCluster(kinds ...string) bool {
	return s.mayRetry(process.Canceled) && slices.Contains(kinds, s.Kind) && s.begun()
}

// uncreated reports whether the operation is a creation that failed, or that was canceled before it started. The broker rejects another order
// with the ID of the instance until the instance is deleted.
func (s situation) uncreated() bool {
	return s.Kind == environment.KindProvision && (s.failed() || s.mayRetry(process.Canceled) && !s.begun())
}

// superseded reports whether the operation failed or was canceled, and a later operation of its instance prevents a retry.
func (s situation) superseded() bool {
	return (s.is(process.Failed) || s.is(process.Canceled)) && s.LaterOperationID != "" && !s.retried() && environment.Retryable(s.Kind)
}

// conducts reports whether the operation conducts an orchestration. The broker rejects interventions in such an operation.
func (s situation) conducts() bool { return s.Kind == environment.KindOrchestrate }

// amongOthers reports whether another operation of the instance may explain why the operation does not run.
func (s situation) amongOthers() bool {
	return (s.is(process.Pending) || s.is(process.Canceled)) && !s.conducts()
}

// mayCancel reports whether an operator may want to cancel the operation.
func (s situation) mayCancel() bool { return (s.stuck() || s.is(process.Pending)) && !s.conducts() }

// haltedConductor reports whether the operation conducts an orchestration and does not proceed.
func (s situation) haltedConductor() bool {
	return s.conducts() && (s.stuck() || s.is(process.Pending) || s.is(process.Failed) || s.is(process.Canceled))
}

// leaves reports whether the operation is of a kind that can leave a leftover. The broker later repeats the steps that such an
// operation did not complete.
func (s situation) leaves() bool {
	return !s.provisioner && slices.Contains([]string{environment.KindDeprovision, environment.KindSuspend, environment.KindCleanup}, s.Kind)
}

// from returns a function that matches operations whose problem was reported by one of the given components.
func from(components ...string) func(situation) bool {
	return func(s situation) bool { return s.failing() && slices.Contains(components, s.Problem.Component) }
}

// refusesBroker reports whether the Provisioner rejects the broker's credentials, or the broker's user has no role there. In both
// cases, the Provisioner itself may be available; its log then shows the rejected request.
func (s situation) refusesBroker() bool {
	return s.provisionerStatus(http.StatusUnauthorized, http.StatusForbidden)
}

// missesProvisioner reports whether the address that the broker calls responds, but serves no GraphQL API: its path or its server is
// wrong. A GraphQL API responds to each POST request with another status than 404 and 405.
func (s situation) missesProvisioner() bool {
	return s.provisionerStatus(http.StatusNotFound, http.StatusMethodNotAllowed)
}

// provisionerStatus reports whether a call to the Provisioner got a response with one of the given HTTP statuses.
func (s situation) provisionerStatus(statuses ...int) bool {
	return from(failure.ComponentProvisioner)(s) && s.Problem.Reason == failure.ReasonHTTPStatus &&
		slices.ContainsFunc(statuses, func(status int) bool {
			return strings.Contains(s.Problem.Message, fmt.Sprintf("HTTP status %d", status))
		})
}

// ofProvisioner reports whether the Provisioner is the source of the problem, and the problem says no more than that.
func (s situation) ofProvisioner() bool {
	return from(failure.ComponentProvisioner)(s) && !s.refusesBroker() && !s.missesProvisioner() && !s.lacksCredentials()
}

// rejected reports whether the Provisioner has rejected the request, with the reason in the detail. It was available then.
func (s situation) rejected() bool {
	return from(failure.ComponentProvisioner)(s) && s.is(process.Failed) && s.Problem.Reason == failure.ReasonInternal && s.Problem.Detail != ""
}

// lacksCredentials reports whether Gardener rejects a Shoot because of its credentials binding: the binding does not exist, or
// belongs to a different provider. In both cases, Gardener has not created the Shoot, and its error message contains the kind of
// the binding, CredentialsBinding or SecretBinding.
func (s situation) lacksCredentials() bool {
	message := strings.ToLower(s.Problem.Message + " " + s.Problem.Detail)

	return s.failing() && (strings.Contains(message, "credentialsbinding") || strings.Contains(message, "secretbinding"))
}

// inBroker restricts a condition to operations of the broker.
func inBroker(applies func(situation) bool) func(situation) bool {
	return func(s situation) bool { return !s.provisioner && applies(s) }
}

// failedAs returns a function that matches failed operations of the given kind.
func failedAs(kind string) func(situation) bool {
	return func(s situation) bool { return s.failed() && s.Kind == kind }
}

// rule adds its advice to the explanation of each operation to which it applies. The placeholders {instance}, {operation},
// {later}, {step} and {repeats} in the advice are replaced with the operation's values, so that users can copy the commands.
type rule struct {
	applies func(situation) bool
	advice  string
}

// rules returns all rules in the order in which their advice is printed: whether to act at all, how to check the failing system,
// interventions, and new requests that replace the operation.
//
//nolint:funlen // a table
func rules() []rule {
	return []rule{
		{
			situation.amongOthers,
			"List the operations of the instance: ebctl operation list --instance {instance}",
		},
		{
			func(s situation) bool { return s.active() && s.failing() },
			"The broker retries on its own. Follow the operation: ebctl operation get {operation} --wait",
		},
		{
			func(s situation) bool { return s.active() && !s.failing() && !s.repeating() },
			"No action is needed. Follow the operation: ebctl operation get {operation} --wait",
		},
		{
			situation.repeating,
			"The message has been the same for {repeats}. Check the system that it names: the operation might not continue on its own.",
		},
		{
			inBroker(func(s situation) bool {
				return s.repeating() && strings.Contains(s.Timeline[len(s.Timeline)-1].Message, "in progress")
			}),
			"If a Kyma Provisioner was killed during an operation on this runtime, nothing continues that operation. To end it, see docs/operator/kyma-provisioner.md.",
		},
		{
			inBroker(situation.refusesBroker),
			"The Provisioner rejects the broker's credentials. Set the broker's APP_PROVISIONER_USER and APP_PROVISIONER_PASSWORD to a user in " +
				"the Provisioner's APP_AUTH_BASIC_USERS, and restart the broker.",
		},
		{
			inBroker(situation.missesProvisioner),
			"The server responds, but not as a Provisioner. Set the broker's APP_PROVISIONER_URL to the address of the GraphQL API, which ends with " +
				"/graphql, and restart the broker.",
		},
		{
			inBroker(func(s situation) bool { return s.ofProvisioner() && !s.rejected() && !s.responds() }),
			"If this persists, check that the Provisioner is running and that the broker can reach it (APP_PROVISIONER_URL).",
		},
		{
			inBroker(func(s situation) bool { return s.ofProvisioner() && s.responds() }),
			"The Provisioner responds, but reports a problem. Find the cause in the Provisioner's log, or with 'ebctl provisioner operation list'.",
		},
		{
			inBroker(situation.lacksCredentials),
			"The Gardener project has no matching credentials binding. Set the broker's APP_TARGET_SECRETS to an existing CredentialsBinding of " +
				"the provider, or create the binding; then restart the broker.",
		},
		{
			func(s situation) bool {
				return from(failure.ComponentGardener, failure.ComponentGardenerClient)(s) && !s.lacksCredentials()
			},
			"Check the Shoot's conditions and last errors in Gardener. Common causes are credentials and quotas.",
		},
		{
			inBroker(from(failure.ComponentRuntime)),
			"Check the runtime: ebctl instance kubeconfig {instance}",
		},
		{
			func(s situation) bool { return s.failing() && s.Problem.Reason == failure.ReasonConfiguration },
			"Correct the configuration that the problem names.",
		},
		{
			inBroker(situation.rejected),
			"The Provisioner rejects the request. The problem says why.",
		},
		{
			func(s situation) bool {
				return s.failing() && s.Problem.Reason == failure.ReasonInternal && (s.provisioner || !s.rejected())
			},
			"Find the cause in the broker's log: search for operation {operation}.",
		},
		{
			func(s situation) bool { return s.active() && due(s.Operation, s.now.Add(-process.Overdue)) },
			"The operation is overdue. Check that the broker is running and has free workers (APP_WORKERS).",
		},
		{
			func(s situation) bool { return s.is(process.Succeeded) && len(s.SkippedSteps) > 0 && !s.leaves() },
			"Some steps were skipped; the timeline shows why. Do the work of these steps manually.",
		},
		{
			func(s situation) bool { return s.is(process.Succeeded) && len(s.SkippedSteps) > 0 && s.leaves() },
			"Some steps were skipped or not completed; the timeline shows why. The broker runs them again once a day until nothing is left: " +
				"ebctl instance list --leftovers",
		},
		{
			func(s situation) bool {
				return s.Kind == environment.KindCleanup && (s.is(process.Failed) || s.is(process.Canceled))
			},
			"After fixing the cause, clean up again: ebctl leftover cleanup {instance} --reason REASON",
		},
		{
			func(s situation) bool { return s.Kind == environment.KindBind && s.is(process.Failed) },
			"The broker removes the binding. After fixing the cause, let the platform send the request again.",
		},
		{
			func(s situation) bool { return s.stuck() && s.Skippable },
			"To continue without the step: ebctl operation skip {operation} --step {step} --reason REASON",
		},
		{
			situation.mayCancel,
			"To cancel the operation: ebctl operation cancel {operation} --reason REASON",
		},
		{
			situation.haltedConductor,
			"The operation conducts an orchestration, which you can cancel or retry instead: ebctl orchestration list",
		},
		{
			situation.retried,
			"The operation was retried. The last entry of the timeline names the new operation.",
		},
		{
			situation.superseded,
			"A later operation of the instance exists, so this one cannot be retried: ebctl operation explain {later}",
		},
		{
			situation.failed,
			"After fixing the cause, run the failed stage again: ebctl operation retry {operation} --reason REASON",
		},
		{
			func(s situation) bool { return s.failed() && s.Skippable },
			"Or run it without the failed step: ebctl operation retry {operation} --skip {step} --reason REASON",
		},
		{
			func(s situation) bool { return s.mayRetry(process.Canceled) },
			"To retry the operation: ebctl operation retry {operation} --reason REASON",
		},
		{
			func(s situation) bool { return s.leavesCluster(environment.KindProvision) },
			"The cancellation removed nothing: the cluster may still exist. To remove it, delete the instance: ebctl instance delete {instance}",
		},
		{
			func(s situation) bool { return s.leavesCluster(environment.KindResume) },
			"The cancellation removed nothing: the cluster may still exist. To remove it, suspend the instance: ebctl instance suspend {instance}",
		},
		{
			func(s situation) bool { return s.provisioner && s.leavesCluster("Provision", "ProvisionNoInstall") },
			"The cancellation removed nothing: the Shoot may exist. It stays until a client of the Provisioner sends the mutation " +
				`deprovisionRuntime(id: "{instance}").`,
		},
		{
			situation.uncreated,
			"Or delete the instance and create it again: ebctl instance delete {instance}",
		},
		{
			failedAs(environment.KindDeprovision),
			"Or delete the instance again: ebctl instance delete {instance}",
		},
		{
			failedAs(environment.KindUpdate),
			"Or send another update. Until it succeeds, the instance keeps its previous parameters: " +
				"ebctl instance update {instance} --parameters JSON",
		},
		{
			failedAs(environment.KindUpgradeKyma),
			"Or order the upgrade again. Until the upgrade succeeds, the instance keeps its previous version, but parts of the new version may already be installed: " +
				"ebctl upgrade kyma {instance}",
		},
		{
			failedAs(environment.KindUpgradeCluster),
			"Or order the upgrade again. Part of it may already have reached the cluster: ebctl upgrade cluster {instance}",
		},
		{
			failedAs(environment.KindSuspend),
			"Or suspend the instance again. Until that succeeds, the instance cannot be updated or resumed: ebctl instance suspend {instance}",
		},
		{
			failedAs(environment.KindResume),
			"Or resume the instance again (ebctl instance resume {instance}) or suspend it (ebctl instance suspend {instance})",
		},
	}
}

// advice returns the advice of all matching rules, with placeholders replaced.
func advice(s situation) []string {
	var sentences []string

	placeholders := strings.NewReplacer("{instance}", s.InstanceID, "{operation}", s.ID, "{later}", s.LaterOperationID, "{step}", s.Step,
		"{repeats}", timetext.Duration(s.repeats()))

	for _, rule := range rules() {
		if !rule.applies(s) {
			continue
		}

		text := rule.advice
		if s.provisioner {
			text = ForProvisioner(text)
		}

		sentences = append(sentences, placeholders.Replace(text))
	}

	return sentences
}
