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

// client calls a Provisioner as Kyma Environment Broker does: values are in the text of the request, every call is named `result`,
// and an answer that holds anything unknown is not understood.
type client struct {
	*testing.T

	url string
	// tenant and subAccount are the headers; an empty one is not sent.
	tenant, subAccount string
	// sendsGET has queries sent with GET.
	sendsGET bool
}

// refusal is an error as Kyma Environment Broker reads it.
type refusal struct {
	Message    string `json:"message"`
	Extensions struct {
		Code      int    `json:"error_code"`
		Reason    string `json:"error_reason"`
		Component string `json:"error_component"`
	} `json:"extensions"`
}

// recorded is the text of a request, with the ids of this run.
func recorded(t *testing.T, name, runtimeID, operationID string) string {
	t.Helper()

	text, err := os.ReadFile(filepath.Join("testdata", name+".graphql"))
	if err != nil {
		t.Fatal(err)
	}

	return strings.NewReplacer(`"RUNTIME"`, `"`+runtimeID+`"`, `"OPERATION"`, `"`+operationID+`"`).Replace(string(text))
}

// ask sends the text and decodes the result. It returns the errors of the answer, and fails the test when the answer is not one that a
// client understands.
func (c client) ask(text string, result any) []refusal {
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

	var answer struct {
		Data struct {
			Result json.RawMessage `json:"result"`
		} `json:"data"`
		Errors []refusal `json:"errors"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || response.StatusCode != http.StatusOK {
		c.Fatalf("answer %d %s: %v", response.StatusCode, body, err)
	}

	if len(answer.Errors) > 0 {
		return answer.Errors
	}

	if err := strictly(answer.Data.Result, result); err != nil {
		c.Fatalf("%v\nthe answer is %s", err, body)
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

// must sends a request that must not be refused.
func (c client) must(text string, result any) {
	c.Helper()

	if refused := c.ask(text, result); refused != nil {
		c.Fatalf("refused: %+v", refused)
	}
}

// ordered sends a mutation and returns the operation that it is answered with.
func (c client) ordered(name, runtimeID string, want operationType) operationStatus {
	c.Helper()

	var got operationStatus

	c.must(recorded(c.T, name, runtimeID, ""), &got)

	if got.ID == nil || *got.ID == "" || got.RuntimeID == nil || *got.RuntimeID == "" || got.LastError == nil || got.Operation != want {
		c.Fatalf("%s is answered with %+v", name, got)
	}

	return got
}

// succeeded polls until the operation has.
func (c client) succeeded(operationID string) {
	c.Helper()

	harness.Until(c, "operation "+operationID+" to succeed", func() bool {
		var got operationStatus

		c.must(recorded(c.T, "operation_status", "", operationID), &got)

		if got.State == "Failed" {
			c.Fatalf("the operation failed: %s, %+v", *got.Message, got.LastError)
		}

		return got.State == "Succeeded"
	})
}

// status asks for a runtime.
func (c client) status(runtimeID string) runtimeStatus {
	c.Helper()

	var got runtimeStatus

	c.must(recorded(c.T, "runtime_status", runtimeID, ""), &got)

	return got
}
