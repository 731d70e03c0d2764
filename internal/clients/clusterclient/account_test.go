package clusterclient_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	accountName = "environment-broker-binding-b1"
	accountPath = "/shoot/api/v1/namespaces/kube-system/serviceaccounts"
	rolePath    = "/shoot/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
)

var expires = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// cluster is a fake API server that records its requests. The statuses field sets the response status by method and path; all
// other requests succeed.
type cluster struct {
	mutex    sync.Mutex
	asked    []string
	bodies   string
	statuses map[string]int
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusTeapot)

		return
	}

	c.mutex.Lock()
	defer c.mutex.Unlock()

	asked := r.Method + " " + r.URL.Path
	c.asked = append(c.asked, asked)
	c.bodies += string(body)

	status, set := c.statuses[asked]
	if !set {
		status = map[string]int{http.MethodPost: http.StatusCreated, http.MethodDelete: http.StatusOK}[r.Method]
	}

	answer := map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "message": sensitive, "reason": map[int]string{
		http.StatusConflict: "AlreadyExists", http.StatusNotFound: "NotFound", http.StatusForbidden: "Forbidden",
	}[status]}

	switch {
	case status < http.StatusBadRequest && strings.HasSuffix(r.URL.Path, "/token"):
		answer = map[string]any{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "status": map[string]any{
			"token": "token-" + sensitive, "expirationTimestamp": expires,
		}}
	case status < http.StatusBadRequest:
		answer["status"] = "Success"
	}

	encoded, err := json.Marshal(answer)
	if err != nil {
		w.WriteHeader(http.StatusTeapot)

		return
	}

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encoded)
}

func binding() environment.Binding {
	return environment.Binding{ID: "b1", BindingID: "from the platform", Role: environment.RoleEdit, Lifetime: 20 * time.Minute}
}

func accessTo(t *testing.T, c *cluster) (clusterclient.Access, *httptest.Server) {
	t.Helper()

	server := httptest.NewTLSServer(c)
	t.Cleanup(server.Close)

	return clusterclient.New(kubeconfigs{text: written(t, kubeconfig(server))}), server
}

func TestGrant(t *testing.T) {
	const account, role, token = "POST " + accountPath, "POST " + rolePath, "POST " + accountPath + "/" + accountName + "/token"

	cases := map[string]struct {
		reason   string
		statuses map[string]int
		asked    []string
		want     failure.Kind // empty for none
	}{
		"new":         {"an account, its role, a token", nil, []string{account, role, token}, ""},
		"again":       {"existing objects are kept", map[string]int{account: 409, role: 409}, []string{account, role, token}, ""},
		"no account":  {"the runtime may be starting", map[string]int{account: 503}, []string{account}, failure.Transient},
		"no role":     {"the next call creates the missing role binding", map[string]int{role: 500}, []string{account, role}, failure.Transient},
		"no token":    {"the account was removed in the meantime", map[string]int{token: 404}, []string{account, role, token}, failure.Transient},
		"forbidden":   {"an admin kubeconfig without rights needs an operator", map[string]int{account: 403}, []string{account}, failure.Permanent},
		"rejected":    {"the next attempt gets a new kubeconfig", map[string]int{account: 401}, []string{account}, failure.Transient},
		"not allowed": {"a retry is rejected as well", map[string]int{token: 422}, []string{account, role, token}, failure.Permanent},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			runtime := &cluster{statuses: c.statuses}
			access, server := accessTo(t, runtime)

			granted, err := access.Grant(t.Context(), instance(), binding())
			if (err == nil) != (c.want == "") || err != nil && failure.KindOf(err) != c.want {
				t.Fatalf("want kind %q, got %v", c.want, err)
			}

			if diff := cmp.Diff(c.asked, runtime.asked); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}

			if err != nil {
				if strings.Contains(failure.Of(err).Text, sensitive) {
					t.Errorf("the text for users quotes the runtime: %v", err)
				}

				return
			}

			config, err := clientcmd.RESTConfigFromKubeConfig([]byte(granted.Kubeconfig.Reveal()))
			if err != nil {
				t.Fatal(err)
			}

			if config.BearerToken != "token-"+sensitive || config.Host != server.URL+"/shoot" || len(config.CAData) == 0 ||
				granted.Server != config.Host || !granted.ExpiresAt.Equal(expires) {
				t.Errorf("the access is %+v, %s until %s", config, granted.Server, granted.ExpiresAt)
			}

			for _, part := range []string{"edit", accountName, "ClusterRole", "environment-broker.io/binding"} {
				if !strings.Contains(runtime.bodies, part) {
					t.Errorf("no request body contains %s", part)
				}
			}
		})
	}
}

func TestRevoke(t *testing.T) {
	const account, role = "DELETE " + accountPath + "/" + accountName, "DELETE " + rolePath + "/" + accountName

	cases := map[string]struct {
		reason   string
		statuses map[string]int
		want     failure.Kind // empty for none
	}{
		"there":      {"binding and account are removed", nil, ""},
		"gone":       {"the account has already been removed", map[string]int{account: 404, role: 404}, ""},
		"half":       {"only the remaining object is removed", map[string]int{role: 404}, ""},
		"away":       {"the account may still exist", map[string]int{account: 500}, failure.Transient},
		"rights":     {"the role binding may still exist", map[string]int{role: 503}, failure.Transient},
		"no longer":  {"the admin kubeconfig has lost its rights", map[string]int{role: 403}, failure.Permanent},
		"no runtime": {"the caller decides", nil, failure.NotFound},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			access, _ := accessTo(t, &cluster{statuses: c.statuses})

			owner := instance()
			if c.want == failure.NotFound {
				owner.RuntimeID = ""
			}

			if err := access.Revoke(t.Context(), owner, binding()); (err == nil) != (c.want == "") || err != nil && failure.KindOf(err) != c.want {
				t.Errorf("%s: want kind %q, got %v", c.reason, c.want, err)
			}
		})
	}
}
