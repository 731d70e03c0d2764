package clusterclient_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	serviceManagerPath = "/shoot/api/v1/namespaces/kyma-system/secrets/sap-btp-manager"
	namespacesPath     = "/shoot/api/v1/namespaces"
)

func serviceManager() environment.ServiceManager {
	return environment.ServiceManager{
		ClientID: "id-" + sensitive, ClientSecret: "secret-" + sensitive, URL: "https://sm.example.com", TokenURL: "https://tokens.example.com",
	}
}

// TestApplyServiceManager checks the requests and the Secret for a new runtime and for one with a Secret, and the errors of the runtime.
func TestApplyServiceManager(t *testing.T) {
	const read, namespace, write = "GET " + serviceManagerPath, "POST " + namespacesPath, "PATCH " + serviceManagerPath

	// broken is the status of a response whose connection breaks.
	const broken = -1

	derived := instance().ServiceManagerClusterID()
	all := []string{read, namespace, write}

	cases := map[string]struct {
		reason    string
		present   map[string][]byte // the data of the Secret in the runtime
		statuses  map[string]int
		asked     []string
		clusterID string
		want      failure.Kind // empty for none
	}{
		"new":          {"the ID is derived from the instance", nil, nil, all, derived, ""},
		"again":        {"the namespace exists", nil, map[string]int{namespace: 409}, all, derived, ""},
		"taken over":   {"Service Manager knows the runtime under its ID", map[string][]byte{"cluster_id": []byte("former")}, nil, all, "former", ""},
		"foreign":      {"a Secret without an ID is completed", map[string][]byte{"clientid": []byte("other")}, nil, all, derived, ""},
		"unreadable":   {"without the former ID nothing is written", nil, map[string]int{read: 500}, []string{read}, "", failure.Transient},
		"no namespace": {"the runtime may be starting", nil, map[string]int{namespace: 503}, []string{read, namespace}, "", failure.Transient},
		"forbidden":    {"an operator must correct the rights", nil, map[string]int{write: 403}, all, "", failure.Permanent},
		"rejected":     {"the next attempt gets a new kubeconfig", nil, map[string]int{read: 401}, []string{read}, "", failure.Transient},
		"busy":         {"the runtime is overloaded", nil, map[string]int{read: 429}, []string{read}, "", failure.Transient},
		"lost rights":  {"the next attempt gets a new kubeconfig", nil, map[string]int{write: 401}, all, "", failure.Transient},
		"failing":      {"the runtime may recover", nil, map[string]int{write: 500}, all, "", failure.Transient},
		"away":         {"the runtime may recover", nil, map[string]int{write: broken}, all, "", failure.Transient},
		"conflict":     {"another client writes the Secret", nil, map[string]int{write: 409}, all, "", failure.Transient},
		"throttled":    {"the runtime is overloaded", nil, map[string]int{write: 429}, all, "", failure.Transient},
		"invalid":      {"a Secret of another type cannot be changed", nil, map[string]int{write: 422}, all, "", failure.Permanent},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var (
				asked   []string
				applied corev1.Secret
			)

			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Method+" "+r.URL.Path)
				status := c.statuses[r.Method+" "+r.URL.Path]
				if status == 0 && r.Method == http.MethodGet && c.present == nil {
					status = http.StatusNotFound
				}

				if status == broken {
					panic(http.ErrAbortHandler)
				}

				w.Header().Set("Content-Type", "application/json")

				if status != 0 {
					w.WriteHeader(status)
					_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "message": sensitive, "reason": map[int]string{
						http.StatusNotFound: "NotFound", http.StatusConflict: "AlreadyExists", http.StatusForbidden: "Forbidden", http.StatusUnprocessableEntity: "Invalid",
					}[status]})

					return
				}

				if r.Method == http.MethodPatch {
					body, _ := io.ReadAll(r.Body)
					if err := json.Unmarshal(body, &applied); err != nil || r.Header.Get("Content-Type") != "application/apply-patch+yaml" || r.URL.Query().Get("force") != "true" {
						t.Errorf("applied %s with %q, %v", r.URL, r.Header.Get("Content-Type"), err)
					}
				}

				_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Secret", "apiVersion": "v1", "data": c.present})
			}))
			t.Cleanup(server.Close)

			err := clusterclient.New(kubeconfigs{text: written(t, kubeconfig(server))}).ApplyServiceManager(t.Context(), instance(), serviceManager())
			if (err == nil) != (c.want == "") || err != nil && failure.KindOf(err) != c.want {
				t.Fatalf("%s: want kind %q, got %v", c.reason, c.want, err)
			}

			if diff := cmp.Diff(c.asked, asked); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}

			if err != nil {
				if strings.Contains(failure.Of(err).Text, sensitive) {
					t.Errorf("the text for users quotes the runtime: %v", err)
				}

				return
			}

			want := map[string][]byte{
				"clientid": []byte("id-" + sensitive), "clientsecret": []byte("secret-" + sensitive), "sm_url": []byte("https://sm.example.com"),
				"tokenurl": []byte("https://tokens.example.com"), "cluster_id": []byte(c.clusterID),
			}
			if diff := cmp.Diff(want, applied.Data); diff != "" || applied.Type != corev1.SecretTypeOpaque {
				t.Errorf("%s: type %s, -want +got\n%s", c.reason, applied.Type, diff)
			}
		})
	}
}

// TestRepairServiceManager checks that a Secret with the values of the instance is only read, and that any other one is written with its
// cluster ID, after begin.
func TestRepairServiceManager(t *testing.T) {
	complete := map[string][]byte{
		"clientid": []byte("id-" + sensitive), "clientsecret": []byte("secret-" + sensitive), "sm_url": []byte("https://sm.example.com"),
		"tokenurl": []byte("https://tokens.example.com"), "cluster_id": []byte("former"),
	}

	for name, present := range map[string]map[string][]byte{
		"current": complete, "missing": nil, "changed": {"clientid": []byte("other"), "cluster_id": []byte("former")},
	} {
		var (
			writes []corev1.Secret
			begun  int
		)

		begin := func(context.Context) error {
			begun++

			if len(writes) > 0 {
				t.Errorf("%s: the Secret was written before the repair began", name)
			}

			return nil
		}

		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")

			if r.Method == http.MethodPatch {
				var applied corev1.Secret

				_ = json.NewDecoder(r.Body).Decode(&applied)
				writes = append(writes, applied)
			}

			if r.Method == http.MethodGet && present == nil {
				w.WriteHeader(http.StatusNotFound)
				_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound"})

				return
			}

			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Secret", "apiVersion": "v1", "data": present})
		}))
		t.Cleanup(server.Close)

		repaired, err := clusterclient.New(kubeconfigs{text: written(t, kubeconfig(server))}).RepairServiceManager(t.Context(), instance(), serviceManager(), begin)
		if err != nil || repaired != (name != "current") || len(writes) != map[bool]int{true: 1}[repaired] || begun != len(writes) {
			t.Errorf("%s: repaired %t with %d writes, begun %d times, %v", name, repaired, len(writes), begun, err)
		}

		if name == "changed" && string(writes[0].Data["cluster_id"]) != "former" {
			t.Errorf("the cluster ID becomes %q", writes[0].Data["cluster_id"])
		}
	}
}
