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
			"the same request may fit later, but nobody repeats it by himself",
			failure.Mapping{HTTP: http.StatusConflict, GraphQL: 400},
		},
		failure.NotFound: {
			"clients of the GraphQL API tell it by the reason, the code only says that a retry is of no use",
			failure.Mapping{HTTP: http.StatusNotFound, GraphQL: 400},
		},
		failure.Quota: {
			"the request is well formed and cannot be fulfilled",
			failure.Mapping{HTTP: http.StatusUnprocessableEntity, GraphQL: 400},
		},
		failure.Denied: {
			"a retry with the same rights ends the same way",
			failure.Mapping{HTTP: http.StatusForbidden, GraphQL: 403},
		},
		failure.Transient: {
			"clients of both protocols try again, and so does the engine",
			failure.Mapping{HTTP: http.StatusServiceUnavailable, GraphQL: 503, Retry: true},
		},
		failure.Waiting: {
			"what has to finish first will",
			failure.Mapping{HTTP: http.StatusServiceUnavailable, GraphQL: 503, Retry: true},
		},
		failure.Permanent: {
			"the fault is behind us and a retry is of no use",
			failure.Mapping{HTTP: http.StatusBadGateway, GraphQL: 400},
		},
		failure.Internal: {
			"a client may try again, the engine does not: it would do the same wrong thing",
			failure.Mapping{HTTP: http.StatusInternalServerError, GraphQL: 500},
		},
		"dreamt up": {
			"a kind that nobody knows is a fault of ours",
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
		"itself":  {"an error explains itself", quota, quota},
		"wrapped": {"what was being done is added on the way up", fmt.Errorf("creating: %w", quota), quota},
		"joined":  {"errors of several parts come together", errors.Join(plain, quota), quota},
		"outer":   {"whoever wraps an explained error again knows better what it means", fmt.Errorf("creating: %w", away), away},
		"plain":   {"an error that nobody explained is a fault of ours, and its text is not for users", plain, internal},
		"none":    {"the absence of an error is not of any kind that somebody asks for", nil, internal},
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
				t.Errorf("%s: it is taken for another kind", c.reason)
			}
		})
	}

	if failure.Of(plain).Cause != plain { //nolint:errorlint // this very error is kept
		t.Error("the log does not get the cause of an error that nobody explained")
	}
}

func TestErrorHasOneTextForUsersAndOneForTheLog(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.1: refused")
	err := failure.Wrap(failure.Transient, cause, "the Provisioner does not answer after %d tries", 3)

	if err.Text != "the Provisioner does not answer after 3 tries" {
		t.Errorf("users read %q", err.Text)
	}

	if !strings.HasPrefix(err.Error(), err.Text) || !strings.HasSuffix(err.Error(), cause.Error()) {
		t.Errorf("the log gets %q", err.Error())
	}

	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}

	if got := failure.New(failure.Invalid, "no name").Error(); got != "no name" {
		t.Errorf("without a cause the log gets %q", got)
	}
}
