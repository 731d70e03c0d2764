package brokerclient_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pivotal-cf/brokerapi/v10/domain"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func TestRequests(t *testing.T) {
	t.Parallel()

	type sent struct {
		Line, Version, Identity, User, Password, Agent, Body string
	}

	osb := sent{Version: "2.17", Identity: "identity-1", User: "operator", Password: "secret", Agent: "ebctl/test"}
	operator := sent{User: "operator", Password: "secret", Agent: "ebctl/test"}

	of := func(kind sent, line, body string) sent {
		kind.Line, kind.Body = line, body

		return kind
	}

	cases := map[string]struct {
		reason string
		call   func(context.Context, *brokerclient.Client) error
		want   sent
	}{
		"Catalog": {
			reason: "a platform region has its own path",
			call: func(ctx context.Context, client *brokerclient.Client) error {
				_, err := client.Catalog(ctx, "cf-eu10")

				return err
			},
			want: of(osb, "GET /oauth/cf-eu10/v2/catalog", ""),
		},
		"Provision": {
			reason: "creation is asynchronous, and IDs are one segment of the path",
			call: func(ctx context.Context, client *brokerclient.Client) error {
				_, err := client.Provision(ctx, "", "a/b", domain.ProvisionDetails{ServiceID: "s", PlanID: "p"})

				return err
			},
			want: of(osb, "PUT /v2/service_instances/a%2Fb?accepts_incomplete=true",
				`{"service_id":"s","plan_id":"p","organization_guid":"","space_guid":""}`),
		},
		"Deprovision": {
			reason: "a deletion names service and plan in the query",
			call: func(ctx context.Context, client *brokerclient.Client) error {
				_, err := client.Deprovision(ctx, "i", domain.DeprovisionDetails{ServiceID: "s", PlanID: "p"})

				return err
			},
			want: of(osb, "DELETE /v2/service_instances/i?accepts_incomplete=true&plan_id=p&service_id=s", ""),
		},
		"Instance": {
			reason: "reading an instance sends the protocol's headers",
			call: func(ctx context.Context, client *brokerclient.Client) error {
				_, err := client.Instance(ctx, "i")

				return err
			},
			want: of(osb, "GET /v2/service_instances/i", ""),
		},
		"AdminKubeconfig": {
			reason: "the operator API needs no headers",
			call: func(ctx context.Context, client *brokerclient.Client) error {
				_, err := client.CreateAdminKubeconfig(ctx, "i")

				return err
			},
			want: of(operator, "POST /runtimes/i/adminkubeconfig", ""),
		},
		"Operations": {
			reason: "empty filters are omitted",
			call: func(ctx context.Context, client *brokerclient.Client) error {
				_, err := client.ListOperations(ctx, operatorapi.ListOperationsParams{State: operatorapi.OperationStateInProgress})

				return err
			},
			want: of(operator, "GET /operations?state=in+progress", ""),
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var got sent

			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				user, password, _ := r.BasicAuth()
				got = sent{
					Line: r.Method + " " + r.URL.RequestURI(), Version: r.Header.Get("X-Broker-Api-Version"),
					Identity: r.Header.Get("X-Broker-Api-Request-Identity"), User: user, Password: password,
					Agent: r.UserAgent(), Body: string(body),
				}

				respond(http.StatusOK, "{}")(w, r)
			})

			if err := tc.call(t.Context(), client); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNoCredentialsNoAuthorization(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if header := r.Header.Get("Authorization"); header != "" {
			t.Errorf("a request without credentials has the header Authorization: %q", header)
		}

		respond(http.StatusOK, "{}")(w, r)
	}))
	defer server.Close()

	client := brokerclient.New(brokerclient.Config{Address: server.URL})

	if _, err := client.ListRuntimes(t.Context(), operatorapi.ListRuntimesParams{}); err != nil {
		t.Fatal(err)
	}
}

func TestTokenReplacesPassword(t *testing.T) {
	t.Parallel()

	var got string

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"data":[]}`)
	}))
	defer server.Close()

	client := brokerclient.New(brokerclient.Config{Address: server.URL, Username: "operator", Password: "secret", Token: "signed"})
	if _, err := client.ListAudit(t.Context(), operatorapi.ListAuditParams{}); err != nil || got != "Bearer signed" {
		t.Errorf("got the header %q (%v), want one with the token", got, err)
	}
}
