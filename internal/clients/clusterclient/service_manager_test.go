package clusterclient_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/internal/secret"
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

// TestApplyServiceManager checks the requests and the Secret for a new runtime and for one with a Secret.
func TestApplyServiceManager(t *testing.T) {
	const read, namespace, write = "GET " + serviceManagerPath, "POST " + namespacesPath, "PATCH " + serviceManagerPath

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

// runtimeFault is a fault of an API server. status is the status of the response; 0 stands for a response without JSON, slow for no
// response, and broken for a broken connection.
type runtimeFault struct {
	method string
	// times is the number of requests with the method that fail; always means all.
	times, status, retryAfter int
}

// brokenRuntime is an API server with a fault. Without the fault, it has no Secret and accepts every write.
type brokenRuntime struct {
	mutex sync.Mutex
	fault runtimeFault
	asked []string
	// released ends requests without a response.
	released chan struct{}
}

const slow, broken, always = -1, -2, -1

// take records the request and returns its fault.
func (b *brokenRuntime) take(method string) (status int, faulty bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	b.asked = append(b.asked, method)

	if method != b.fault.method || b.fault.times == 0 {
		return 0, false
	}

	b.fault.times--

	return b.fault.status, true
}

func (b *brokenRuntime) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, faulty := b.take(r.Method)

	switch {
	case !faulty && r.Method == http.MethodGet:
		status = http.StatusNotFound
	case !faulty:
		status = http.StatusOK
	case status == broken:
		panic(http.ErrAbortHandler)
	case status == slow:
		select {
		case <-b.released:
		case <-r.Context().Done():
		}

		return
	case status == 0:
		_, _ = w.Write([]byte("<html>"))

		return
	case b.fault.retryAfter > 0:
		w.Header().Set("Retry-After", strconv.Itoa(b.fault.retryAfter))
	}

	if status == http.StatusOK {
		simulator.WriteJSON(w, status, map[string]any{"kind": "Secret", "apiVersion": "v1"})

		return
	}

	simulator.WriteJSON(w, status, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "message": sensitive, "reason": map[int]string{
			http.StatusBadRequest: "BadRequest", http.StatusNotFound: "NotFound", http.StatusConflict: "Conflict", http.StatusForbidden: "Forbidden",
			http.StatusUnprocessableEntity: "Invalid",
		}[status],
	})
}

// newBrokenRuntime starts an API server with the fault, and returns its kubeconfig. Requests without a response end before the server is
// closed.
func newBrokenRuntime(t *testing.T, fault runtimeFault) (*brokenRuntime, secret.String) {
	t.Helper()

	runtime := &brokenRuntime{fault: fault, released: make(chan struct{})}
	server := httptest.NewTLSServer(runtime)

	t.Cleanup(func() {
		close(runtime.released)
		server.Close()
	})

	return runtime, written(t, kubeconfig(server))
}

// away returns the kubeconfig of an API server that no longer exists.
func away(t *testing.T) secret.String {
	t.Helper()

	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()

	return written(t, kubeconfig(server))
}

// TestServiceManagerFaults checks the error of each fault of the runtime, and whether the step that writes the credentials is
// repeated. The stage decides when it is repeated; see TestRepeatedStages in package provisioning.
//
//faults:table btp.md#errors
func TestServiceManagerFaults(t *testing.T) {
	const (
		get, patch    = http.MethodGet, http.MethodPatch
		cannotRead    = "cannot read the BTP service operator's Secret yet: the API server of the runtime does not respond correctly"
		cannotWrite   = "cannot write the BTP service operator's Secret yet: the API server of the runtime does not respond correctly"
		rejectsRead   = "the runtime rejects the request to read the BTP service operator's Secret"
		rejectsWrites = "the runtime rejects the request to write the BTP service operator's Secret"
	)

	cases := map[string]struct {
		fault runtimeFault
		away  bool
		text  string // empty: the credentials are written
		kind  failure.Kind
	}{
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a read/unreachable":  {away: true, text: cannotRead, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a read/slow":         {fault: runtimeFault{method: get, times: always, status: slow}, text: cannotRead, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a read/no JSON":      {fault: runtimeFault{method: get, times: always}, text: cannotRead, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a read/401":          {fault: runtimeFault{method: get, times: always, status: 401}, text: cannotRead, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a read/409":          {fault: runtimeFault{method: get, times: always, status: 409}, text: cannotRead, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a read/429":          {fault: runtimeFault{method: get, times: always, status: 429}, text: cannotRead, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a read/500":          {fault: runtimeFault{method: get, times: always, status: 500}, text: cannotRead, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a read/503":          {fault: runtimeFault{method: get, times: always, status: 503}, text: cannotRead, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a write/unreachable": {fault: runtimeFault{method: patch, times: always, status: broken}, text: cannotWrite, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a write/slow":        {fault: runtimeFault{method: patch, times: always, status: slow}, text: cannotWrite, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a write/no JSON":     {fault: runtimeFault{method: patch, times: always}, text: cannotWrite, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a write/401":         {fault: runtimeFault{method: patch, times: always, status: 401}, text: cannotWrite, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a write/409":         {fault: runtimeFault{method: patch, times: always, status: 409}, text: cannotWrite, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a write/429":         {fault: runtimeFault{method: patch, times: always, status: 429}, text: cannotWrite, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a write/500":         {fault: runtimeFault{method: patch, times: always, status: 500}, text: cannotWrite, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers 401, 409, 429, 500 or above to a write/503":         {fault: runtimeFault{method: patch, times: always, status: 503}, text: cannotWrite, kind: failure.Transient},
		"answers 429 or 503 with Retry-After/429":                                                              {fault: runtimeFault{method: get, times: 1, status: 429, retryAfter: 1}},
		"answers 429 or 503 with Retry-After/503":                                                              {fault: runtimeFault{method: patch, times: 1, status: 503, retryAfter: 1}},
		"answers 429 or 503 with Retry-After/too long":                                                         {fault: runtimeFault{method: get, times: always, status: 429, retryAfter: 60}, text: cannotRead, kind: failure.Transient},
		"answers 400 or 403/400":                           {fault: runtimeFault{method: patch, times: always, status: 400}, text: rejectsWrites, kind: failure.Permanent},
		"answers 400 or 403/403":                           {fault: runtimeFault{method: patch, times: always, status: 403}, text: rejectsWrites, kind: failure.Permanent},
		"answers 400 or 403/403 to a read":                 {fault: runtimeFault{method: get, times: always, status: 403}, text: rejectsRead, kind: failure.Permanent},
		"answers 422, because the Secret has another type": {fault: runtimeFault{method: patch, times: always, status: 422}, text: rejectsWrites, kind: failure.Permanent},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			runtime, kubeconfig := newBrokenRuntime(t, c.fault)
			if c.away {
				kubeconfig = away(t)
			}

			ctx := t.Context()

			if c.fault.status == slow || c.fault.retryAfter > 1 { // instead of the end of the session, after the calls before the fault
				limited, cancel := context.WithTimeout(ctx, 3*time.Second)
				defer cancel()

				ctx = limited
			}

			access := clusterclient.New(kubeconfigs{text: kubeconfig})

			err := access.ApplyServiceManager(ctx, instance(), serviceManager())
			if (err == nil) != (c.text == "") || err != nil && (failure.Of(err).Text != c.text || failure.KindOf(err) != c.kind) {
				t.Errorf("got %v of kind %s, want %q", err, failure.KindOf(err), c.text)
			}

			faulttable.Shows(t, "btp.md#errors", name, c.text)

			runtime.mutex.Lock()
			asked := slices.Clone(runtime.asked)
			runtime.fault.times = 0
			runtime.mutex.Unlock()

			if c.fault.method == get && err != nil && slices.Contains(asked, patch) {
				t.Errorf("without the former ID, the Secret was written: %v", asked)
			}

			if err != nil && c.kind == failure.Transient && !c.away {
				if err := access.ApplyServiceManager(t.Context(), instance(), serviceManager()); err != nil {
					t.Errorf("after the fault: %v", err)
				}
			}
		})
	}
}

// TestRepairServiceManager checks that a Secret with the values of the instance is only read, and that any other Secret is overwritten
// after begin was called, but keeps its cluster ID.
//
//faults:row btp.md#drift has the values of the instance
//faults:row btp.md#drift has other values, or no Secret
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
