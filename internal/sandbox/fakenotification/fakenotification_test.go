package fakenotification_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/notification"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakenotification"
)

// TestContract checks, without the client, the responses on which the client relies.
func TestContract(t *testing.T) {
	simulated := fakenotification.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	const (
		tenants = `"tenants": [{"instanceId": "i", "startDateTime": "2030-01-02 03:04:05"}]`
		created = `{"orchestrationId": "e", "eventType": "1", ` + tenants + `}`
		ended   = `{"orchestrationId": "e", "tenants": [{"instanceId": "i", "endDateTime": "2030-01-02 04:04:05", "eventState": "2"}]}`
	)

	for _, row := range []struct {
		reason, method, path, body string
		status                     int
	}{
		{"unknown fields are rejected", http.MethodPost, notification.PathCreate, `{"id": "e"}`, http.StatusBadRequest},
		{"an event has an ID", http.MethodPost, notification.PathCreate, `{"eventType": "1", ` + tenants + `}`, http.StatusBadRequest},
		{"an event has a known type", http.MethodPost, notification.PathCreate, strings.Replace(created, `"1"`, `"2"`, 1), http.StatusBadRequest},
		{"an event has tenants", http.MethodPost, notification.PathCreate, `{"orchestrationId": "e", "eventType": "1"}`, http.StatusBadRequest},
		{"times have one form", http.MethodPost, notification.PathCreate, strings.Replace(created, " 03:", "T03:", 1), http.StatusBadRequest},
		{"an unknown event cannot be updated", http.MethodPatch, notification.PathUpdate, ended, http.StatusNotFound},
		{"an unknown event cannot be canceled", http.MethodPatch, notification.PathCancel, `{"orchestrationId": "e"}`, http.StatusNotFound},
		{"creations are POST requests", http.MethodPatch, notification.PathCreate, created, http.StatusMethodNotAllowed},
		{"created", http.MethodPost, notification.PathCreate, created, http.StatusCreated},
		{"a repeated creation is a conflict", http.MethodPost, notification.PathCreate, created, http.StatusConflict},
		{"states are known", http.MethodPatch, notification.PathUpdate, strings.Replace(ended, `"2"}`, `"4"}`, 1), http.StatusBadRequest},
		{"tenants are known", http.MethodPatch, notification.PathUpdate, strings.Replace(ended, `"i"`, `"j"`, 1), http.StatusBadRequest},
		{"ended", http.MethodPatch, notification.PathUpdate, ended, http.StatusOK},
		{"canceled", http.MethodPatch, notification.PathCancel, `{"orchestrationId": "e"}`, http.StatusOK},
	} {
		request, err := http.NewRequestWithContext(t.Context(), row.method, server.URL+row.path, strings.NewReader(row.body))
		if err != nil {
			t.Fatal(err)
		}

		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}

		text, err := io.ReadAll(response.Body)
		if err != nil || response.Body.Close() != nil || response.StatusCode != row.status {
			t.Errorf("%s: %d %s, %v", row.reason, response.StatusCode, text, err)
		}
	}

	want := []string{"event e, Kyma, instances i, received: " + strings.Join([]string{"create", "create", "2", "cancel"}, ", ")}
	if diff := cmp.Diff(want, simulated.Holds()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
