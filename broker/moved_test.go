package broker_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
)

// operates sends a request of an admin to the operator API.
func (b *fixture) operates(reason, path, body string, status int) {
	b.Helper()

	admins, err := auth.ParseUsers("admin:" + password + ":admin")
	if err != nil {
		b.Fatal(err)
	}

	step := process.StepFunc("Remove",
		func(_ context.Context, operation process.Operation[environment.Data], _ logrus.FieldLogger) (process.Operation[environment.Data], time.Duration, error) {
			return operation, 0, nil
		})

	engine, err := process.NewEngine(b.operations, process.DefaultConfig(), clock.RealClock{}, logging.Discard(), process.Process[environment.Data]{
		Kind: environment.KindDeprovision, Limit: time.Hour, Stages: []process.Stage[environment.Data]{
			{Name: "remove", Retry: process.DefaultRetry(), Steps: process.Steps[environment.Data](step)},
		},
	})
	if err != nil {
		b.Fatal(err)
	}

	request := httptest.NewRequestWithContext(b.Context(), http.MethodPost, path, strings.NewReader(body))
	request.SetBasicAuth("admin", password)
	request.Header.Set("Content-Type", "application/json")

	got := httptest.NewRecorder()
	operator.NewHandler(operator.Options{
		DB: b.options.DB, Instances: b.instances, Operations: b.operations, Bindings: b.bindings, Recorder: b.options.Recorder, Entries: b.entries,
		Authorizer: auth.NewAuthorizer(admins), Platforms: b.options.Platforms, Clock: b.clock, Log: b.options.Log, Engine: engine,
		Estimator: b.options.Estimator, Wake: b.options.Wake,
	}).ServeHTTP(got, request)

	if got.Code != status {
		b.Fatalf("%s: want %d, got %d %s", reason, status, got.Code, got.Body)
	}
}

// TestMovedDuringDeletion moves or shares instances while the owner's deletion runs or has failed. After the deletion, the platforms
// to which the instance belonged last must see the result, and other platforms must not.
func TestMovedDuringDeletion(t *testing.T) {
	const toBeta = `{"platform": "beta", "reason": "the landscapes are merged"}`

	cases := map[string]struct {
		reason  string
		prepare func(b *fixture, id, deletion string) string // returns the ID of the operation that ends the deletion
		alpha   int
	}{
		"move": {
			"the former owner does not see the instance again", func(b *fixture, id, deletion string) string {
				b.operates("a move", "/runtimes/"+id+"/move", toBeta, http.StatusOK)

				return deletion
			}, http.StatusNotFound,
		},
		"share": {
			"both platforms wait for the deletion", func(b *fixture, id, deletion string) string {
				b.operates("a share", "/runtimes/"+id+"/grant", toBeta, http.StatusOK)

				return deletion
			}, http.StatusOK,
		},
		"retry": {
			"an operator retries a deletion that the former owner has started", func(b *fixture, id, deletion string) string {
				b.move(deletion, process.Failed)
				b.operates("a move", "/runtimes/"+id+"/move", toBeta, http.StatusOK)
				b.operates("a retry", "/operations/"+deletion+"/retry", `{"reason": "the cause is fixed"}`, http.StatusAccepted)

				return b.carried(id)[0].ID
			}, http.StatusNotFound,
		},
	}

	onEach(t, func(b *fixture) {
		isolated(t)(&b.options)
		b.restart()

		for name, c := range cases {
			b.provisioned(name)

			deletion := c.prepare(b, name, b.want("the owner deletes it", b.remove(name), http.StatusAccepted).text("operation"))

			remove := call{method: "DELETE", path: path(name) + "?accepts_incomplete=true" + ids}
			if got := b.want(c.reason, b.as("beta", "", remove), http.StatusAccepted).text("operation"); got != deletion {
				b.Errorf("%s: a repeated deletion returns operation %s, want %s", c.reason, got, deletion)
			}

			b.forget(name)
			b.move(deletion, process.Succeeded)

			for _, query := range []string{"", "?operation=" + deletion} {
				poll := call{method: "GET", path: path(name) + "/last_operation" + query}
				b.wantState(c.reason, b.as("beta", "", poll), "succeeded")
				b.want(c.reason, b.as("platform", "", poll), c.alpha)
			}
		}
	})
}
