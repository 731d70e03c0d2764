package provisionerclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
)

func TestInvalidResponses(t *testing.T) {
	t.Parallel()

	const could = "the Provisioner could not report the state of the operation: it "

	cases := map[string]struct {
		reason string
		status int
		answer string
		want   string
		// wantCause is part of the cause, which is logged and not shown to users.
		wantCause string
	}{
		"HTML": {
			reason: "The error page of a proxy is quoted as one line in the log, and nowhere else.",
			status: http.StatusBadGateway, answer: "<html>\r\n\t<b>Bad</b>\x00\x1b[31m\xff gateway</html>",
			want: could + "returned HTTP status 502 Bad Gateway", wantCause: "the response is: <html> <b>Bad</b> [31m gateway</html>",
		},
		"Denied": {
			reason: "A 403 without GraphQL comes from a proxy and is retried.",
			status: http.StatusForbidden, answer: "RBAC: access denied",
			want: could + "returned HTTP status 403 Forbidden", wantCause: "the response is: RBAC: access denied",
		},
		"Empty": {
			reason: "An empty response is transient.",
			status: http.StatusOK, want: could + "returned a response that is not GraphQL", wantCause: "unexpected end of JSON input",
		},
		"LongText": {
			reason: "Quotations have at most 400 characters, and contain the end of the text, which often names the cause.",
			status: http.StatusOK, answer: strings.Repeat("ä", 100_000) + "cause",
			want:      could + "returned a response that is not GraphQL",
			wantCause: "; the response is: " + strings.Repeat("ä", 200) + "…" + strings.Repeat("ä", 194) + "cause",
		},
		"Redirect": {
			reason: "Redirects are not followed: they would send the tenant elsewhere.",
			status: http.StatusTemporaryRedirect,
			want:   could + "returned HTTP status 307 Temporary Redirect",
		},
		"OtherJSON": {
			reason: "JSON without GraphQL fields is transient.",
			status: http.StatusOK, answer: `{"status": "UP"}`, want: could + "did not return data",
		},
		"Null": {
			reason: "A null response is transient.",
			status: http.StatusOK, answer: `null`, want: could + "did not return data",
		},
		"NoResult": {
			reason: "A null operation is transient.",
			status: http.StatusOK, answer: `{"data": {"result": null}}`, want: could + "did not return the operation",
		},
		"OtherTypes": {
			reason: "Data of an unexpected type is an error.",
			status: http.StatusOK, answer: `{"data": {"result": {"id": 7}}}`,
			want: could + `returned unexpected data`, wantCause: `; the response is: {"data": {"result": {"id": 7}}}`,
		},
		"OtherErrors": {
			reason: "GraphQL errors of an unexpected type are transient.",
			status: http.StatusOK, answer: `{"errors": "none"}`,
			want: could + `returned a response that is not GraphQL`, wantCause: `; the response is: {"errors": "none"}`,
		},
		"DataWithBadStatus": {
			reason: "Data with errors is not used.",
			status: http.StatusInternalServerError, answer: operationAnswer[:20],
			want: could + `returned HTTP status 500 Internal Server Error`, wantCause: `; the response is: {"data": {"result":`,
		},
		"TooLong": {
			reason: "The length of a response is limited.",
			status: http.StatusOK, answer: `{"data": "` + strings.Repeat("a", 8<<20),
			want: could + "returned more than 8192 KiB",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			client := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.answer)
			})

			_, err := client.OperationStatus(t.Context(), "acme", "op-1")
			if got := failure.Of(err); got.Kind != failure.Transient || cmp.Diff(tc.want, got.Text) != "" {
				t.Errorf("%s\nkind %s, text: -want +got:\n%s", tc.reason, got.Kind, cmp.Diff(tc.want, got.Text))
			}

			if cause := fmt.Sprint(failure.Of(err).Cause); tc.wantCause != "" && !strings.Contains(cause, tc.wantCause) {
				t.Errorf("%s\ngot cause %q, want %q", tc.reason, cause, tc.wantCause)
			}
		})
	}
}

func TestMissingIDs(t *testing.T) {
	t.Parallel()

	client, _ := playProvisioner(t, http.StatusOK, `{"data": {"result": null}}`)
	calls := map[string]func() error{
		"ProvisionRuntime": func() error {
			_, err := client.ProvisionRuntime(t.Context(), provisionerclient.Caller{}, nil)

			return err
		},
		"DeprovisionRuntime": func() error {
			_, err := client.DeprovisionRuntime(t.Context(), provisionerclient.Caller{}, "rt-1")

			return err
		},
		"RuntimeStatus": func() error {
			_, err := client.RuntimeStatus(t.Context(), "acme", "rt-1")

			return err
		},
		"Kubeconfig": func() error {
			_, err := client.Kubeconfig(t.Context(), "acme", "rt-1")

			return err
		},
		"Console": func() error {
			_, err := client.Console(t.Context(), "acme", "rt-1")

			return err
		},
		"MaintenanceWindow": func() error {
			_, err := client.MaintenanceWindow(t.Context(), "acme", "rt-1")

			return err
		},
		"Cluster": func() error {
			_, err := client.Cluster(t.Context(), "acme", "rt-1")

			return err
		},
		"Changes": func() error {
			_, err := client.Changes(t.Context(), "", 0)

			return err
		},
	}

	for name, call := range calls {
		if err := call(); !failure.Is(err, failure.Transient) || !strings.Contains(err.Error(), "it did not return ") {
			t.Errorf("%s: a response without a result is not retried: %v", name, err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()

	address := strings.Replace(server.URL, "http://", "http://user:hunter2@", 1)
	client := newClient(t, provisionerclient.Options{URL: address})

	_, err := client.OperationStatus(t.Context(), "acme", "op-1")
	if got := failure.Of(err); got.Kind != failure.Transient ||
		got.Text != "the Provisioner cannot be reached" || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the text lacks the cause or contains credentials: got %s, %v", got.Kind, err)
	}
}

func TestTruncatedResponse(t *testing.T) {
	t.Parallel()

	client := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"data":`)

		panic(http.ErrAbortHandler)
	})

	_, err := client.OperationStatus(t.Context(), "acme", "op-1")
	if got := failure.Of(err); got.Kind != failure.Transient || got.Text != "the Provisioner cannot be reached" {
		t.Errorf("a truncated response is not retried: got %v", err)
	}
}

// silent is the transport of a Provisioner that never responds.
type silent struct{}

func (silent) RoundTrip(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()

	return nil, request.Context().Err()
}

func TestTimeouts(t *testing.T) {
	t.Parallel()

	ask := func(ctx context.Context, client *provisionerclient.Client) error {
		_, err := client.OperationStatus(ctx, "acme", "op-1")

		return err
	}
	wait := func(ctx context.Context, client *provisionerclient.Client) error {
		_, err := client.Changes(ctx, "7", 20*time.Second)

		return err
	}

	cases := map[string]struct {
		reason  string
		timeout time.Duration
		// patience is the timeout of the caller's context.
		patience time.Duration
		call     func(context.Context, *provisionerclient.Client) error
		want     time.Duration
		text     string
	}{
		"Default": {
			reason: "The default timeout is two minutes.", patience: time.Hour,
			call: ask, want: 2 * time.Minute, text: "the Provisioner did not respond within 2m0s",
		},
		"Own": {
			reason: "An option sets the timeout.", patience: time.Hour, timeout: 5 * time.Second,
			call: ask, want: 5 * time.Second, text: "the Provisioner did not respond within 5s",
		},
		"Feed": {
			reason: "A feed call may take its wait time and a margin.", patience: time.Hour, timeout: 5 * time.Second,
			call: wait, want: 30 * time.Second, text: "the Provisioner did not respond within 30s",
		},
		"Impatient": {
			reason: "A canceled context is not a fault of the Provisioner.", patience: time.Second,
			call: ask, want: time.Second, text: "the call to the Provisioner was canceled",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				client := newClient(t, provisionerclient.Options{
					URL: "http://provisioner/graphql", Timeout: tc.timeout, HTTPClient: &http.Client{Transport: silent{}},
				})

				ctx, cancel := context.WithTimeout(t.Context(), tc.patience)
				defer cancel()

				began := time.Now()
				err := tc.call(ctx, client)

				if got := time.Since(began); got != tc.want {
					t.Errorf("%s\nwant %s, got %s", tc.reason, tc.want, got)
				}

				if got := failure.Of(err); got.Kind != failure.Transient || got.Text != tc.text ||
					!errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s\nwant %q, got %s %q", tc.reason, tc.text, got.Kind, got.Text)
				}
			})
		})
	}
}
