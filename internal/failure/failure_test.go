package failure_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/environment-broker/environment-broker/internal/failure"
)

func TestKindsInEachProtocol(t *testing.T) {
	cases := map[failure.Kind]struct {
		reason string
		want   failure.Mapping
	}{
		failure.Invalid: {
			"the sender has to change the request",
			failure.Mapping{HTTP: http.StatusBadRequest, GraphQL: 400},
		},
		failure.Conflict: {
			"the same request may succeed later, but it is not retried automatically",
			failure.Mapping{HTTP: http.StatusConflict, GraphQL: 409},
		},
		failure.NotFound: {
			"GraphQL clients recognize the error by its reason; the code only means that a retry is useless",
			failure.Mapping{HTTP: http.StatusNotFound, GraphQL: 400},
		},
		failure.Quota: {
			"the request is well formed but cannot be fulfilled",
			failure.Mapping{HTTP: http.StatusUnprocessableEntity, GraphQL: 400},
		},
		failure.Denied: {
			"a retry with the same rights fails again",
			failure.Mapping{HTTP: http.StatusForbidden, GraphQL: 403},
		},
		failure.Transient: {
			"clients of both protocols try again, and so does the engine",
			failure.Mapping{HTTP: http.StatusServiceUnavailable, GraphQL: 503, Retry: true},
		},
		failure.Waiting: {
			"the engine retries until the awaited event happens",
			failure.Mapping{HTTP: http.StatusServiceUnavailable, GraphQL: 503, Retry: true},
		},
		failure.Permanent: {
			"the upstream would reject a retry as well",
			failure.Mapping{HTTP: http.StatusBadGateway, GraphQL: 400},
		},
		failure.Internal: {
			"a client may retry; the engine would hit the same bug",
			failure.Mapping{HTTP: http.StatusInternalServerError, GraphQL: 500},
		},
		"unknown": {
			"an unknown kind is a bug",
			failure.Mapping{HTTP: http.StatusInternalServerError, GraphQL: 500},
		},
	}

	for kind, c := range cases {
		t.Run(string(kind), func(t *testing.T) {
			if diff := cmp.Diff(c.want, failure.MappingOf(kind)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestErrorsAreRecognised(t *testing.T) {
	plain := errors.New("dial tcp 10.0.0.1: password hush refused")
	quota := failure.New(failure.Quota, "no %s left", "machines").WithReason("ERR_QUOTA", failure.ComponentGardener)
	internal := &failure.Error{
		Kind: failure.Internal, Reason: failure.ReasonInternal, Text: "internal error",
	}
	away := failure.Wrap(failure.Transient, quota, "away")

	cases := map[string]struct {
		reason string
		err    error
		want   *failure.Error
	}{
		"itself":  {"an Error is returned unchanged", quota, quota},
		"wrapped": {"callers wrap errors with their action", fmt.Errorf("creating: %w", quota), quota},
		"joined":  {"joined errors are searched", errors.Join(plain, quota), quota},
		"outer":   {"the outermost Error decides", fmt.Errorf("creating: %w", away), away},
		"plain":   {"an unclassified error is a bug, and its text is not for users", plain, internal},
		"none":    {"nil has no kind", nil, internal},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, failure.Of(c.err), cmpopts.IgnoreFields(failure.Error{}, "Cause")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}

			if got := failure.KindOf(c.err); got != c.want.Kind {
				t.Errorf("%s: kind %s, want %s", c.reason, got, c.want.Kind)
			}

			if got := failure.Is(c.err, c.want.Kind); got != (c.err != nil) {
				t.Errorf("%s: Is(%s) is %t", c.reason, c.want.Kind, got)
			}

			if failure.Is(c.err, failure.Denied) {
				t.Errorf("%s: it is classified as a different kind", c.reason)
			}
		})
	}

	if failure.Of(plain).Cause != plain { //nolint:errorlint // must be the same error value, not an equal one
		t.Error("an unclassified error lost its cause")
	}
}

func TestDetailFollowsText(t *testing.T) {
	for _, tc := range []struct{ text, detail, want string }{
		{"the cluster failed", "no quota", "the cluster failed: no quota"},
		{"the cluster failed", "", "the cluster failed"},
		{"", "no quota", "no quota"},
		{"no quota", "the cluster failed: no quota: 3 of 3", "the cluster failed: no quota: 3 of 3"}, // nothing is said twice
		{"refused; operators can find the details in the timeline of the operation", "no release 9", "refused: no release 9"},
		{"refused; operators can find the details in the timeline of the operation", "", "refused; operators can find the details in the timeline of the operation"},
	} {
		if got := failure.WithDetail(tc.text, tc.detail); got != tc.want {
			t.Errorf("%q with %q: got %q, want %q", tc.text, tc.detail, got, tc.want)
		}
	}
}

func TestErrorHasOneTextForUsersAndOneForTheLog(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.1: refused")
	err := failure.Wrap(failure.Transient, cause, "the Provisioner does not respond after %d attempts", 3)

	if err.Text != "the Provisioner does not respond after 3 attempts" {
		t.Errorf("the text for users is %q", err.Text)
	}

	if !strings.HasPrefix(err.Error(), err.Text) || !strings.HasSuffix(err.Error(), cause.Error()) {
		t.Errorf("the text for the log is %q", err.Error())
	}

	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}

	if got := failure.New(failure.Invalid, "no name").Error(); got != "no name" {
		t.Errorf("without a cause, the text for the log is %q", got)
	}
}
