package fakeavs_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
)

// TestContract checks, without the client, the responses on which the client relies.
func TestContract(t *testing.T) {
	server := httptest.NewServer(fakeavs.New())
	t.Cleanup(server.Close)

	token := ""
	call := func(method, path, body string) (int, string) {
		t.Helper()

		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}

		if path == fakeavs.Token {
			request.SetBasicAuth(fakeavs.ClientID, "")
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		} else {
			request.Header.Set("Authorization", "Bearer "+token)
		}

		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()

		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}

		return response.StatusCode, string(text)
	}

	form := url.Values{"grant_type": {"password"}, "username": {fakeavs.User}, "password": {"wrong"}}
	if status, _ := call(http.MethodPost, fakeavs.Token, form.Encode()); status != http.StatusUnauthorized {
		t.Errorf("with a wrong password, a request for a token returns %d", status)
	}

	if status, _ := call(http.MethodPost, fakeavs.API, "{}"); status != http.StatusUnauthorized {
		t.Errorf("without a token, a call returns %d", status)
	}

	form.Set("password", fakeavs.Password)

	var issued struct {
		Token string `json:"access_token"`
	}

	_, text := call(http.MethodPost, fakeavs.Token, form.Encode())
	if err := json.Unmarshal([]byte(text), &issued); err != nil {
		t.Fatal(err)
	}

	token = issued.Token

	const definition = `{"name": "one", "definition_type": "BASIC", "parent_id": 7, "threshold": "30000"}`

	for _, row := range []struct {
		reason, method, path, body string
		status                     int
		text                       string
	}{
		{"the threshold is a string", http.MethodPost, "", strings.Replace(definition, `"30000"`, "30000", 1), http.StatusBadRequest, ""},
		{"the threshold is returned as a number", http.MethodPost, "", definition, http.StatusOK, `"threshold":30000`},
		{"IDs are assigned", http.MethodGet, "/101", "", http.StatusOK, `"status":"ACTIVE"`},
		{"tags get the names of their classes", http.MethodPost, "/101/tag", `{"content": "a", "tag_class_id": 3}`, http.StatusOK, `"tag_class_name":"class-3"`},
		{"the state is a bare string", http.MethodPut, "/101/lifecycle", `"MAINTENANCE"`, http.StatusOK, `"status":"MAINTENANCE"`},
		{"unknown states are rejected", http.MethodPut, "/101/lifecycle", `"SLEEPING"`, http.StatusBadRequest, ""},
		{"an evaluation with a parent stays", http.MethodDelete, "/101", "", http.StatusBadRequest, ""},
		{"another parent does not have it", http.MethodDelete, "/8/child/101", "", http.StatusBadRequest, "does not contain subevaluation"},
		{"its parent releases it", http.MethodDelete, "/7/child/101", "", http.StatusOK, ""},
		{"once", http.MethodDelete, "/7/child/101", "", http.StatusBadRequest, "does not contain subevaluation"},
		{"then it can be removed", http.MethodDelete, "/101", "", http.StatusOK, ""},
		{"and is unknown", http.MethodDelete, "/101", "", http.StatusNotFound, ""},
	} {
		if status, text := call(row.method, fakeavs.API+row.path, row.body); status != row.status || !strings.Contains(text, row.text) {
			t.Errorf("%s: %s %s returns %d %s", row.reason, row.method, row.path, status, text)
		}
	}
}
