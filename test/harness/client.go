package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// IDs of the service and the plans in the embedded catalog. Platforms store them, so they never change.
const (
	ServiceID          = "47c9dcbf-ff30-448e-ab36-d3bad66ba281"
	PlanAWS            = "361c511f-f939-4621-b228-d0fb79a1fe15"
	PlanAzure          = "4deee563-e5ec-4731-b9b1-53b42d855f0c"
	PlanAzureLite      = "8cb22518-aa26-44c5-91a0-e669ec9bf443"
	PlanConvergedCloud = "03b812ac-c991-4528-b5bd-08b303523a63"
	PlanFree           = "b1a5764e-2ea1-4f95-94c0-2b4538b37b55"
	PlanGCP            = "ca6e5357-707f-4565-bbbd-b3ab732597c6"
	PlanOwnCluster     = "03e3cb66-a4c6-4c6a-b4b0-5d42224debea"
	PlanPreview        = "5cb3d976-b85c-42ea-a636-79cadda109a9"
	PlanTrial          = "7d55d31d-35ae-4438-bf13-6ffdfa107d9f"
)

// VersionHeader is the header with the client's version of the Open Service Broker API.
const VersionHeader = "X-Broker-API-Version"

// Incomplete is the query string with which a client accepts an asynchronous operation.
const Incomplete = "?accepts_incomplete=true"

// InstancePath returns the path of an instance. The ID is not escaped.
func InstancePath(id string) string { return "/v2/service_instances/" + id }

// BindingPath returns the path of a binding. The IDs are not escaped.
func BindingPath(instance, binding string) string {
	return InstancePath(instance) + "/service_bindings/" + binding
}

// DeletionPath returns the path and the query string for the asynchronous deletion of an instance.
func DeletionPath(id, planID string) string {
	return InstancePath(id) + Incomplete + "&service_id=" + ServiceID + "&plan_id=" + planID
}

// Order returns the body of a provision request for the given plan, without parameters.
func Order(planID string) map[string]any {
	return map[string]any{
		"service_id": ServiceID, "plan_id": planID, "organization_guid": "organization-1", "space_guid": "space-1", "parameters": nil,
	}
}

// Call is a request. Its Header overrides the headers that [Endpoint.Request] sets; a header without values is not sent. Path
// includes the query. If Body is empty, the request has no body.
type Call struct {
	Method, Path, Body string
	Header             http.Header
}

// Reply is a complete response. Body is nil unless Raw is a JSON object.
type Reply struct {
	Status int
	Header http.Header
	Body   map[string]any
	Raw    string
}

// Text returns a string field of the body, or "" if the field is missing or not a string.
func (r Reply) Text(field string) string {
	text, _ := r.Body[field].(string)

	return text
}

// Object returns an object field of the body, or nil if the field is missing or not an object.
func (r Reply) Object(field string) map[string]any {
	object, _ := r.Body[field].(map[string]any)

	return object
}

// Endpoint is the API of a broker with the credentials of one user. It may be used concurrently.
type Endpoint struct {
	URL, User, Password string
	// Transport sends the requests. Nil means http.DefaultTransport.
	Transport http.RoundTripper
}

// Request builds the HTTP request for a call, with credentials, API version 2.17 and the JSON content type.
func (e Endpoint) Request(ctx context.Context, call Call) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, call.Method, e.URL+call.Path, strings.NewReader(call.Body))
	if err != nil {
		return nil, fmt.Errorf("building %s %s: %w", call.Method, call.Path, err)
	}

	if call.Body == "" {
		request.Body = http.NoBody
	}

	request.SetBasicAuth(e.User, e.Password)
	request.Header[http.CanonicalHeaderKey(VersionHeader)] = []string{"2.17"}
	request.Header.Set("Content-Type", "application/json")
	maps.Copy(request.Header, call.Header)

	return request, nil
}

// Do sends a call once, without following redirects, and reads the response. It returns an error if no complete response arrives
// within [Patience]. The status is not checked.
func (e Endpoint) Do(call Call) (Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()

	request, err := e.Request(ctx, call)
	if err != nil {
		return Reply{}, err
	}

	response, err := cmp.Or(e.Transport, http.DefaultTransport).RoundTrip(request)
	if err != nil {
		return Reply{}, fmt.Errorf("%s %s: %w", call.Method, call.Path, err)
	}
	defer func() { _ = response.Body.Close() }()

	content, err := io.ReadAll(response.Body)
	if err != nil {
		return Reply{}, fmt.Errorf("%s %s: %w", call.Method, call.Path, err)
	}

	reply := Reply{Status: response.StatusCode, Header: response.Header, Raw: string(content)}
	_ = json.Unmarshal(content, &reply.Body) // Body stays nil if the content is not a JSON object

	return reply, nil
}

// Client orders instances from a broker as a platform does. Its methods fail the test if a response is unexpected, except
// [Client.Try].
type Client struct {
	testing.TB
	Endpoint
}

// Try sends a request with a JSON body, or without a body if body is nil. It returns an error if no response arrives or if the
// response is not a JSON object.
func (c Client) Try(method, path string, body any) (Reply, error) {
	c.Helper()

	call := Call{Method: method, Path: path}

	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			c.Fatal(err)
		}

		call.Body = string(encoded)
	}

	reply, err := c.Do(call)
	if err == nil && reply.Body == nil {
		err = fmt.Errorf("%s %s: the response is not a JSON object: %q", method, path, reply.Raw)
	}

	return reply, err
}

// Send sends a request like [Client.Try]. It fails the test if Try would return an error or if the response status differs from
// want.
func (c Client) Send(method, path string, body any, want int) Reply {
	c.Helper()

	reply, err := c.Try(method, path, body)
	if err != nil {
		c.Fatal(err)
	}

	if reply.Status != want {
		c.Fatalf("%s %s: status %d, want %d: %s", method, path, reply.Status, want, reply.Raw)
	}

	return reply
}

// Create orders an instance without parameters and returns the ID of the operation.
func (c Client) Create(id, planID string) (operation string) {
	c.Helper()

	return c.Send(http.MethodPut, InstancePath(id)+Incomplete, Order(planID), http.StatusAccepted).Text("operation")
}

// Update orders an update of an instance. change is the request body without the service ID, which Update adds to the map.
// Setting context.active to false suspends the instance; true resumes it.
func (c Client) Update(id string, change map[string]any) {
	c.Helper()

	change["service_id"] = ServiceID
	c.Send(http.MethodPatch, InstancePath(id)+Incomplete, change, http.StatusAccepted)
}

// Delete orders the deletion of an instance and returns the ID of the operation.
func (c Client) Delete(id, planID string) (operation string) {
	c.Helper()

	return c.Send(http.MethodDelete, DeletionPath(id, planID), nil, http.StatusAccepted).Text("operation")
}

// WaitForEnd polls until the last operation of an instance has ended, and returns the last reply. It continues to poll while the
// broker or its database is unavailable.
func (c Client) WaitForEnd(id string) Reply {
	c.Helper()

	var last Reply

	c.Until("the operation on "+id+" to end", func() bool {
		reply, err := c.Try(http.MethodGet, InstancePath(id)+"/last_operation", nil)
		if err != nil || reply.Status == http.StatusServiceUnavailable {
			return false
		}

		last = reply

		return reply.Text("state") != "in progress"
	})

	return last
}

// WantSucceeded waits until the last operation of an instance has ended, and fails the test if the operation failed.
func (c Client) WantSucceeded(id string) {
	c.Helper()

	if last := c.WaitForEnd(id); last.Text("state") != "succeeded" {
		c.Fatalf("the operation on %s ended with %d %s, want succeeded", id, last.Status, last.Raw)
	}
}

// WantFailed waits until the last operation of an instance has ended, and fails the test unless the operation failed with a
// description that contains cause.
func (c Client) WantFailed(id, cause string) {
	c.Helper()

	if last := c.WaitForEnd(id); last.Text("state") != "failed" || !strings.Contains(last.Text("description"), cause) {
		c.Fatalf("the operation on %s ended with %d %s, want a failure: %s", id, last.Status, last.Raw, cause)
	}
}

// WantGone waits until an instance is deleted, and fails the test if the deletion failed.
func (c Client) WantGone(id string) {
	c.Helper()

	c.WantSucceeded(id)
	c.Send(http.MethodGet, InstancePath(id), nil, http.StatusNotFound)
}

// Until is like the function [Until], but fails the client's test.
func (c Client) Until(what string, condition func() bool) {
	c.Helper()
	Until(c, what, condition)
}
