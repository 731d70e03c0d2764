package fakereconciler_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
)

const kubeconfig = `clusters: [{name: c, cluster: {server: https://api.example.com}}]`

// TestContract checks, without the client, the responses on which the client relies.
func TestContract(t *testing.T) {
	server := httptest.NewServer(fakereconciler.New())
	t.Cleanup(server.Close)

	body := func(runtime, component, kubeconfig string) string {
		return `{"runtimeID": "one", "runtimeInput": {"name": "` + runtime + `", "description": ""}, "kubeconfig": "` + kubeconfig +
			`", "kymaConfig": {"version": "1.0.0", "components": [{"component": "` + component + `", "configuration": [{"key": "a", "value": true}]}]}}`
	}

	for _, row := range []struct {
		reason, method, path, body string
		status                     int
		text                       string
	}{
		{"unknown", http.MethodGet, "/one/configs/2/status", "", http.StatusNotFound, `{"error":`},
		{"unknown", http.MethodDelete, "/one", "", http.StatusNotFound, `{"error":`},
		{"no JSON", http.MethodPost, "", "{", http.StatusBadRequest, "unmarshal"},
		{"no kubeconfig", http.MethodPost, "", body("n", "istio", "none"), http.StatusBadRequest, "kubeconfig not accepted"},
		{"no component", http.MethodPost, "", `{"runtimeID": "one", "kubeconfig": "` + kubeconfig + `"}`, http.StatusInternalServerError, "component list is empty"},
		{"too large", http.MethodPost, "", body("n", strings.Repeat("x", fakereconciler.MaxBody), kubeconfig), http.StatusRequestEntityTooLarge, "too large"},
		{"versions are assigned", http.MethodPost, "", body("n", "istio", kubeconfig), http.StatusOK, `"clusterVersion":1,"configurationVersion":2,"status":"reconcile_pending"`},
		{"an equal cluster keeps its versions", http.MethodPost, "", body("n", "istio", kubeconfig+" # new"), http.StatusOK, `"clusterVersion":1,"configurationVersion":2`},
		{"another version is unknown", http.MethodGet, "/one/configs/1/status", "", http.StatusNotFound, ""},
		{"the installation proceeds", http.MethodGet, "/one/configs/2/status", "", http.StatusOK, `"status":"reconciling"`},
		{"and ends", http.MethodGet, "/one/status", "", http.StatusOK, `"status":"ready"`},
		{"another component is another configuration", http.MethodPost, "", body("n", "dns", kubeconfig), http.StatusOK, `"clusterVersion":1,"configurationVersion":3`},
		{"another description is another cluster", http.MethodPut, "", body("m", "dns", kubeconfig), http.StatusOK, `"clusterVersion":4,"configurationVersion":5`},
		{"the removal returns the version", http.MethodDelete, "/one", "", http.StatusOK, `"configurationVersion":5,"status":"delete_pending"`},
		{"proceeds", http.MethodGet, "/one/configs/5/status", "", http.StatusOK, `"status":"deleting"`},
		{"and ends", http.MethodGet, "/one/configs/5/status", "", http.StatusNotFound, ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), row.method, server.URL+"/v1/clusters"+row.path, strings.NewReader(row.body))
		if err != nil {
			t.Fatal(err)
		}

		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}

		text, err := io.ReadAll(response.Body)
		response.Body.Close()

		if err != nil || response.StatusCode != row.status || !strings.Contains(string(text), row.text) {
			t.Errorf("%s: %s %s returns %d %s, %v", row.reason, row.method, row.path, response.StatusCode, text, err)
		}
	}
}
