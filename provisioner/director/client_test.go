package director_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/environment-broker/environment-broker/internal/failure"
	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/provisioner/director"
)

func TestRuntimeLifecycle(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	id := f.register("c-first")
	f.register("c-second")

	want := director.Runtime{
		ID: id, Name: "c-first", Description: "test runtime", Labels: map[string]any{label: "c-first", "scenarios": []any{"DEFAULT"}},
	}

	found, err := f.client.Find(t.Context(), tenant, label, "c-first")
	if diff := cmp.Diff([]director.Runtime{want}, found); diff != "" || err != nil {
		t.Errorf("found by its label: %v, -want +got:\n%s", err, diff)
	}

	for label, value := range map[string]string{label: `c-"third"`, "other": "c-first"} {
		if found, err := f.client.Find(t.Context(), tenant, label, value); err != nil || len(found) > 0 {
			t.Errorf("label %s with value %s: found %v, %v", label, value, found, err)
		}
	}

	if found, err := f.client.Find(t.Context(), "tenant-2", label, "c-first"); err != nil || len(found) > 0 {
		t.Errorf("another tenant finds %v, %v", found, err)
	}

	change := director.Change{Labels: map[string]any{"gardenerClusterName": "c-first"}, Condition: director.Provisioning}
	if err := f.client.Update(t.Context(), tenant, id, change); err != nil {
		t.Fatal(err)
	}

	if err := f.client.Update(t.Context(), tenant, id, director.Change{Labels: map[string]any{"more": true}}); err != nil {
		t.Fatal(err)
	}

	stored := simulator.Runtime{
		ID: id, Tenant: tenant, Name: "c-first", Description: "test runtime", Condition: "PROVISIONING",
		Labels: map[string]any{label: "c-first", "scenarios": []any{"DEFAULT"}, "gardenerClusterName": "c-first", "more": true},
	}
	if diff := cmp.Diff(stored, f.director.Runtimes()[0], cmpopts.IgnoreTypes(time.Time{})); diff != "" {
		t.Errorf("an update keeps other fields, -want +got:\n%s", diff)
	}

	for range 2 { // A second call changes nothing.
		if err := f.client.Unregister(t.Context(), tenant, id); err != nil {
			t.Error(err)
		}
	}

	if _, err := f.client.Get(t.Context(), tenant, id); !failure.Is(err, failure.NotFound) {
		t.Errorf("the runtime still exists: %v", err)
	}

	f.director.Forget(tenant)

	if err := f.client.Unregister(t.Context(), tenant, id); err != nil {
		t.Errorf("a deleted tenant has runtimes: %v", err)
	}
}

func TestOneTimeToken(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	id := f.register("c-first")

	one, err := f.client.OneTimeToken(t.Context(), tenant, id)
	if err != nil {
		t.Fatal(err)
	}

	given := f.director.Runtimes()[0].OneTimeTokens
	if len(given) != 1 || one.Token.Reveal() != given[0].Token || one.ConnectorURL != "https://connector.example.com/graphql" {
		t.Errorf("got a token with connector %s, %d were issued", one.ConnectorURL, len(given))
	}

	f.director.Inject(simulator.Fault{Operation: "requestOneTimeTokenForRuntime", Body: `{"data":{"result":{"token":["hush"]}}}`})

	if _, err := f.client.OneTimeToken(t.Context(), tenant, id); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("the error quotes a response with a token: %v", err)
	}
}

func TestErrorsOfDirector(t *testing.T) {
	own := func(kind failure.Kind, reason string) failure.Error {
		return failure.Error{Kind: kind, Reason: reason, Component: failure.ComponentDirector}
	}
	client := func(reason string) failure.Error {
		return failure.Error{Kind: failure.Transient, Reason: reason, Component: failure.ComponentDirectorClient}
	}
	another := `{"data":{"result":{"id":"another","name":"n"}}}`

	cases := map[string]struct {
		reason string
		fault  simulator.Fault
		want   failure.Error
		text   string
	}{
		"internal":     {"the error may be temporary", simulator.Fault{Body: simulator.Rejection(simulator.InternalError)}, own(failure.Transient, "InternalError"), ""},
		"unknown":      {"the error may be temporary", simulator.Fault{Body: simulator.Rejection(simulator.UnknownError)}, own(failure.Transient, "UnknownError"), ""},
		"undocumented": {"an unknown code may be temporary", simulator.Fault{Body: simulator.Rejection(99)}, own(failure.Transient, "Error99"), ""},
		"no code": {
			"the error may be temporary", simulator.Fault{Body: `{"errors":[{"message":"100% wrong"}]}`}, own(failure.Transient, failure.ReasonInternal), "it reports an internal error",
		},
		"odd extensions": {
			"valid extensions are read",
			simulator.Fault{Body: `{"errors":[{"message":"m","extensions":[1]}]}`},
			own(failure.Transient, failure.ReasonInternal), "",
		},
		"not found":          {"the object stays missing", simulator.Fault{Body: simulator.Rejection(simulator.NotFound)}, own(failure.NotFound, "NotFound"), ""},
		"not unique":         {"the name is taken", simulator.Fault{Body: simulator.Rejection(simulator.NotUnique)}, own(failure.Conflict, "NotUnique"), ""},
		"invalid":            {"the order is wrong", simulator.Fault{Body: simulator.Rejection(simulator.InvalidData)}, own(failure.Invalid, "InvalidData"), ""},
		"invalid operation":  {"the order is wrong", simulator.Fault{Body: simulator.Rejection(simulator.InvalidOperation)}, own(failure.Invalid, "InvalidOperation"), ""},
		"scopes":             {"an operator corrects them", simulator.Fault{Body: simulator.Rejection(simulator.InsufficientScopes)}, own(failure.Transient, "InsufficientScopes"), "runtime:write"},
		"tenant required":    {"the caller sent no tenant", simulator.Fault{Body: simulator.Rejection(simulator.TenantRequired)}, own(failure.Invalid, "TenantRequired"), ""},
		"tenant not found":   {"the tenant does not exist", simulator.Fault{Body: simulator.Rejection(simulator.TenantNotFound)}, own(failure.Invalid, "TenantNotFound"), ""},
		"unauthorized twice": {"a new token is rejected as well", simulator.Fault{Body: simulator.Rejection(simulator.Unauthorized), Times: 2}, own(failure.Transient, "Unauthorized"), ""},
		"401 twice":          {"a gateway rejects a new token as well", simulator.Fault{Status: 401, Times: 2}, own(failure.Transient, "Unauthorized"), ""},
		"503":                {"Director is being restarted", simulator.Fault{Status: 503}, client(failure.ReasonHTTPStatus), "503"},
		"no GraphQL":         {"the response comes from another server", simulator.Fault{Body: "<html>"}, client(failure.ReasonHTTPStatus), "returned a response that is not GraphQL"},
		"too long":           {"the size of responses is limited", simulator.Fault{Body: strings.Repeat("x", 4<<20+1)}, client(failure.ReasonHTTPStatus), "4096 KiB"},
		"no data":            {"the response lacks the result", simulator.Fault{Body: `{}`}, own(failure.Transient, failure.ReasonDirectorNilResponse), ""},
		"other data":         {"the data has another type", simulator.Fault{Body: `{"data":{"result":7}}`}, client(failure.ReasonHTTPStatus), "unexpected data"},
		"another runtime":    {"the ID differs", simulator.Fault{Body: another}, own(failure.Transient, failure.ReasonDirectorIDMismatch), ""},
		"broken":             {"the connection breaks", simulator.Fault{Unsent: true}, client(failure.ReasonInternal), "cannot be reached"},
		"lost":               {"the connection breaks", simulator.Fault{Lost: true}, client(failure.ReasonInternal), "cannot be reached"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, simulator.Options{})
			id := f.register("c-first")

			c.fault.Operation = "updateRuntime"
			f.director.Inject(c.fault)

			err := f.client.Update(t.Context(), tenant, id, director.Change{})
			if diff := cmp.Diff(c.want, *failure.Of(err), cmpopts.IgnoreFields(failure.Error{}, "Text", "Detail", "Cause")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}

			if text := failure.Of(err).Text; !strings.Contains(text, c.text) || strings.Contains(text, "127.0.0.1") || strings.Contains(text, "<html>") ||
				strings.Contains(text, "injected") || strings.Contains(text, "100% wrong") {
				t.Errorf("%s: got text %q", c.reason, text)
			}

			if detail := failure.Of(err).Detail; strings.Contains(c.fault.Body, "injected: ") && !strings.HasPrefix(detail, "injected: ") {
				t.Errorf("%s: operators do not read Director's message: %q", c.reason, detail)
			}

			if got := errors.Is(err, director.ErrTenantUnknown); got != (c.fault.Body == simulator.Rejection(simulator.TenantNotFound)) {
				t.Errorf("classified as an unknown tenant: %t", got)
			}
		})
	}
}

func TestEmptyAnswers(t *testing.T) {
	nothing := simulator.Fault{Body: `{"data":{"result":null}}`, Times: -1}

	calls := map[string]struct {
		call func(f fixture) error
		want failure.Kind
	}{
		"register": {func(f fixture) error {
			_, err := f.client.Register(t.Context(), tenant, director.Runtime{Name: "n"})

			return err
		}, failure.Transient},
		"find": {func(f fixture) error {
			_, err := f.client.Find(t.Context(), tenant, label, "v")

			return err
		}, failure.Transient},
		"get": {func(f fixture) error {
			_, err := f.client.Get(t.Context(), tenant, "id")

			return err
		}, failure.NotFound},
		"token": {func(f fixture) error {
			_, err := f.client.OneTimeToken(t.Context(), tenant, "id")

			return err
		}, failure.Transient},
	}

	for name, c := range calls {
		f := newFixture(t, simulator.Options{})
		if err := f.client.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}

		f.director.Inject(nothing)

		err := c.call(f)
		if !failure.Is(err, c.want) || failure.Of(err).Reason != failure.ReasonDirectorNilResponse {
			t.Errorf("%s: %v", name, err)
		}
	}

	f := newFixture(t, simulator.Options{})
	f.director.Inject(simulator.Fault{Operation: "unregisterRuntime", Body: nothing.Body})

	if err := f.client.Unregister(t.Context(), tenant, "id"); err != nil {
		t.Errorf("want an error for a lost response, because the runtime may still be registered: %v", err)
	}
}

func TestInvalidOptions(t *testing.T) {
	for _, url := range []string{"", "director", "ftp://director/graphql", "http://"} {
		if _, err := director.New(director.Options{URL: url}); err == nil {
			t.Errorf("URL %q is accepted", url)
		}
	}
}

func TestOperationNames(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	id := f.register("c-first")

	if err := f.client.Update(t.Context(), tenant, id, director.Change{Condition: director.Failed}); err != nil {
		t.Fatal(err)
	}

	want := []string{simulator.TokenOperation, "registerRuntime", "runtime", "updateRuntime"}

	var calls []string
	for _, call := range f.director.Calls() {
		calls = append(calls, call.Operation)
	}

	if !slices.Equal(calls, want) {
		t.Errorf("calls: %v, want %v", calls, want)
	}
}
