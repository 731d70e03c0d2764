package kymacompat

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	tenant     = "tenant-1"
	subAccount = "sub-1"
)

// client calls a Provisioner as Kyma Environment Broker does: the text of the request contains all values, every call is named
// `result`, and unknown fields in a response are errors.
type client struct {
	*testing.T

	url string
	// tenant and subAccount are header values. The client does not send empty headers.
	tenant, subAccount string
	// sendsGET sends queries with GET instead of POST.
	sendsGET bool
}

// graphQLError is an error as Kyma Environment Broker decodes it.
type graphQLError struct {
	Message    string `json:"message"`
	Extensions struct {
		Code      int    `json:"error_code"`
		Reason    string `json:"error_reason"`
		Component string `json:"error_component"`
	} `json:"extensions"`
}

// recorded reads a recorded request from testdata and replaces the placeholders for the IDs.
func recorded(t *testing.T, name, runtimeID, operationID string) string {
	t.Helper()

	text, err := os.ReadFile(filepath.Join("testdata", name+".graphql"))
	if err != nil {
		t.Fatal(err)
	}

	return strings.NewReplacer(`"RUNTIME"`, `"`+runtimeID+`"`, `"OPERATION"`, `"`+operationID+`"`).Replace(string(text))
}

// send sends a GraphQL request and decodes the "result" field of the response data, rejecting unknown fields. It returns the
// GraphQL errors in the response. Any other failure ends the test.
func (c client) send(text string, result any) []graphQLError {
	c.Helper()

	response, err := http.DefaultClient.Do(c.request(text))
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.Fatal(err)
	}

	var decoded struct {
		Data struct {
			Result json.RawMessage `json:"result"`
		} `json:"data"`
		Errors []graphQLError `json:"errors"`
	}
	if err := json.Unmarshal(body, &decoded); err != nil || response.StatusCode != http.StatusOK {
		c.Fatalf("response %d %s: %v", response.StatusCode, body, err)
	}

	if len(decoded.Errors) > 0 {
		return decoded.Errors
	}

	if err := decodeStrict(decoded.Data.Result, result); err != nil {
		c.Fatalf("%v\nthe response is %s", err, body)
	}

	return nil
}

func (c client) request(text string) *http.Request {
	c.Helper()

	body, err := json.Marshal(map[string]any{"query": text, "variables": nil})
	if err != nil {
		c.Fatal(err)
	}

	method, address := http.MethodPost, c.url
	if c.sendsGET && strings.HasPrefix(text, "query") {
		method, address, body = http.MethodGet, c.url+"?"+url.Values{"query": {text}}.Encode(), nil
	}

	request, err := http.NewRequestWithContext(c.Context(), method, address, bytes.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}

	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("Accept", "application/json; charset=utf-8")

	for name, value := range map[string]string{"tenant": c.tenant, "sub-account": c.subAccount} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}

	return request
}

func (c client) mustSend(text string, result any) {
	c.Helper()

	if problems := c.send(text, result); problems != nil {
		c.Fatalf("the request was rejected: %+v", problems)
	}
}

// order sends a mutation and returns the operation that it starts.
func (c client) order(name, runtimeID string, want operationType) operationStatus {
	c.Helper()

	var got operationStatus

	c.mustSend(recorded(c.T, name, runtimeID, ""), &got)

	if got.ID == nil || *got.ID == "" || got.RuntimeID == nil || *got.RuntimeID == "" || got.LastError == nil || got.Operation != want {
		c.Fatalf("%s returned %+v", name, got)
	}

	return got
}

// wantSucceeded polls until the operation has ended, and fails the test unless it succeeded.
func (c client) wantSucceeded(operationID string) {
	c.Helper()

	harness.Until(c, "operation "+operationID+" to succeed", func() bool {
		var got operationStatus

		c.mustSend(recorded(c.T, "operation_status", "", operationID), &got)

		if got.State == "Failed" {
			c.Fatalf("the operation failed: %s, %+v", *got.Message, got.LastError)
		}

		return got.State == "Succeeded"
	})
}

func (c client) status(runtimeID string) runtimeStatus {
	c.Helper()

	var got runtimeStatus

	c.mustSend(recorded(c.T, "runtime_status", runtimeID, ""), &got)

	return got
}
