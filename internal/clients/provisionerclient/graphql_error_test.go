package provisionerclient_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// seeTimeline is the end of a text that does not name the cause.
const seeTimeline = "; operators can find the details in the timeline of the operation"

func TestProblems(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason  string
		status  int
		problem string
		want    *failure.Error
	}{
		"BadRequest": {
			reason:  "Codes from 400 to 499 are permanent.",
			problem: `{"message": "no such\n zone", "extensions": {"error_code": 400, "error_reason": "r", "error_component": "gardener"}}`,
			want: &failure.Error{
				Kind: failure.Permanent, Reason: "r", Component: "gardener", Text: "the Provisioner refused to remove the runtime" + seeTimeline,
				Detail: "no such zone",
			},
		},
		"Quota": {
			reason:  "Users read the remedy of a code of Gardener, in the reason or in the message.",
			problem: `{"message": "<b>buy</b>", "extensions": {"error_code": 400, "error_reason": "ERR_INFRA_QUOTA_EXCEEDED", "error_component": "gardener"}}`,
			want: &failure.Error{
				Kind: failure.Permanent, Reason: "ERR_INFRA_QUOTA_EXCEEDED", Component: "gardener",
				Text: "the Provisioner refused to remove the runtime: Gardener reports ERR_INFRA_QUOTA_EXCEEDED: " +
					"raise the quota of the cloud account or remove unused resources, then retry",
				Detail: "<b>buy</b>",
			},
		},
		"Fields": {
			reason: "Users read which fields of their order are invalid, in our words.",
			problem: `{"message": "machineType is <b>bad</b>", "extensions": {"error_code": 400, "error_reason": "err_provisioner_bad_request",
				"error_fields": ["config.clusterConfig.gardenerConfig.machineType", "config.<b>"]}}`,
			want: &failure.Error{
				Kind: failure.Permanent, Reason: "err_provisioner_bad_request", Component: "provisioner",
				Text:   "the Provisioner refused to remove the runtime: the Provisioner rejects the machine type" + seeTimeline,
				Detail: "config.clusterConfig.gardenerConfig.machineType config.<b> machineType is <b>bad</b>",
			},
		},
		"Codes": {
			reason:  "Reasons and components are stored, and PostgreSQL rejects NUL characters.",
			problem: `{"message": "m\u0000", "extensions": {"error_code": 400, "error_reason": "a\u0000b", "error_component": "c\nd"}}`,
			want: &failure.Error{
				Kind: failure.Permanent, Reason: "a b", Component: "c d", Text: "the Provisioner refused to remove the runtime" + seeTimeline, Detail: "m",
			},
		},
		"LastOfRange": {
			reason:  "499 is permanent, and a code may be a string.",
			problem: `{"message": "m", "extensions": {"error_code": "499"}}`,
			want:    refused("m"),
		},
		"OtherStatus": {
			reason: "GraphQL errors override the HTTP status.",
			status: http.StatusUnprocessableEntity, problem: `{"message": "m", "extensions": {"error_code": 400}}`,
			want: refused("m"),
		},
		"NotFound": {
			reason: "A missing runtime is recognized by the reason, because the Kyma Provisioner sets the code to 2.",
			problem: `{"message": "no runtime", "extensions":
				{"error_code": 2, "error_reason": "err_db_not_found", "error_component": "db - provisioner"}}`,
			want: &failure.Error{
				Kind: failure.NotFound, Reason: "err_db_not_found", Component: "db - provisioner",
				Text:   "the Provisioner could not remove the runtime: the Provisioner's database has no such object" + seeTimeline,
				Detail: "no runtime",
			},
		},
		"NotFoundByGardener": {
			reason:  "The Provisioner forwards the reason of Kubernetes for a Shoot that does not exist.",
			problem: `{"message": "no such object", "extensions": {"error_code": 400, "error_reason": "NotFound"}}`,
			want: &failure.Error{
				Kind: failure.NotFound, Reason: "NotFound", Component: "provisioner",
				Text:   "the Provisioner could not remove the runtime: the Provisioner has no such object" + seeTimeline,
				Detail: "no such object",
			},
		},
		"PreviousOperation": {
			reason:  "The Kyma Provisioner reports a running operation only in its text.",
			problem: `{"message": "cannot start new one while previous operation is in progress", "extensions": {"error_code": 400}}`,
			want:    busy("cannot start new one while previous operation is in progress"),
		},
		"OperationInProgress": {
			reason:  "A running operation can have a different message.",
			problem: `{"message": "Operation 5f1e of type PROVISION is already In-Progress", "extensions": {"error_code": 500}}`,
			want:    busy("Operation 5f1e of type PROVISION is already In-Progress"),
		},
		"NoOperationInProgress": {
			reason:  "Similar texts are not waits.",
			problem: `{"message": "no operation in progress to cancel", "extensions": {"error_code": 400}}`,
			want:    refused("no operation in progress to cancel"),
		},
		"OperationNotInProgress": {
			reason:  "Similar texts are not waits.",
			problem: `{"message": "operation is not in progress", "extensions": {"error_code": 400}}`,
			want:    refused("operation is not in progress"),
		},
		"Internal": {
			reason:  "500 is transient.",
			problem: `{"message": "boom", "extensions": {"error_code": 500, "error_reason": "err_provisioner_internal"}}`,
			want: &failure.Error{
				Kind: failure.Transient, Reason: "err_provisioner_internal", Component: failure.ComponentProvisioner,
				Text: "the Provisioner could not remove the runtime" + seeTimeline, Detail: "boom",
			},
		},
		"NoExtensions": {
			reason:  "An error without a code is transient.",
			problem: `{"message": "boom"}`,
			want:    failed("boom"),
		},
		"RubbishExtensions": {
			reason:  "Extensions of an unexpected type are ignored.",
			problem: `{"message": "boom", "extensions": "none"}`,
			want:    failed("boom"),
		},
		"RubbishCodes": {
			reason:  "Values of an unexpected type are ignored.",
			problem: `{"message": "boom", "extensions": {"error_code": {"a": 400}, "error_reason": 7, "error_component": null}}`,
			want:    failed("boom"),
		},
		"Path": {
			reason:  "Unused parts may have any type.",
			problem: `{"message": "boom", "path": {"a": 1}, "locations": "here"}`,
			want:    failed("boom"),
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if tc.status == 0 {
				tc.status = http.StatusOK
			}

			client, _ := playProvisioner(t, tc.status, `{"errors": [`+tc.problem+`], "data": null}`)

			_, err := client.DeprovisionRuntime(t.Context(), provisionerclient.Caller{Tenant: "acme"}, "rt-1")
			if diff := cmp.Diff(tc.want, failure.Of(err)); diff != "" {
				t.Errorf("%s\nerror: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNoFeed(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason  string
		status  int
		message string
		want    bool
	}{
		"gqlgen": {
			reason: "gqlgen responds with 422.", status: http.StatusUnprocessableEntity,
			message: `Cannot query field \"operationChanges\" on type \"Query\".`, want: true,
		},
		"Java": {
			reason: "The message of GraphQL Java is recognized.", status: http.StatusOK,
			message: `Validation error (FieldUndefined@[operationChanges]) : Field 'operationChanges' in type 'Query' is undefined`, want: true,
		},
		"Ruby": {
			reason: "The message of graphql-ruby is recognized.", status: http.StatusBadRequest,
			message: `Field 'operationChanges' doesn't exist on type 'Query'`, want: true,
		},
		"OtherField": {
			reason: "An unknown field other than the feed is ignored.", status: http.StatusOK,
			message: `Cannot query field \"cursor\" on type \"Query\".`,
		},
		"OtherProblem": {
			reason: "An error of the feed does not mean that there is no feed.", status: http.StatusOK, message: "operationChanges took too long",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			client, _ := playProvisioner(t, tc.status, fmt.Sprintf(`{"errors": [{"message": "%s"}]}`, tc.message))

			_, err := client.Changes(t.Context(), "", 0)
			if got := errors.Is(err, provisionerclient.ErrNoFeed); got != tc.want {
				t.Errorf("%s\nwant ErrNoFeed %t, got %v", tc.reason, tc.want, err)
			}

			want := failure.Transient
			if tc.want {
				want = failure.Permanent
			}

			if got := failure.KindOf(err); got != want {
				t.Errorf("%s\nwant kind %s, got %s", tc.reason, want, got)
			}
		})
	}
}

func refused(message string) *failure.Error {
	return &failure.Error{
		Kind: failure.Permanent, Component: failure.ComponentProvisioner,
		Text: "the Provisioner refused to remove the runtime" + seeTimeline, Detail: message,
	}
}

func busy(message string) *failure.Error {
	return &failure.Error{
		Kind: failure.Waiting, Component: failure.ComponentProvisioner,
		Text: "the Provisioner is still busy with the runtime", Detail: message,
	}
}

func failed(message string) *failure.Error {
	return &failure.Error{
		Kind: failure.Transient, Component: failure.ComponentProvisioner,
		Text: "the Provisioner could not remove the runtime" + seeTimeline, Detail: message,
	}
}
