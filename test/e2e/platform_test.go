package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// What the catalog offers.
const (
	serviceID = "47c9dcbf-ff30-448e-ab36-d3bad66ba281"
	planAWS   = "361c511f-f939-4621-b228-d0fb79a1fe15"
	planAzure = "4deee563-e5ec-4731-b9b1-53b42d855f0c"
	planGCP   = "ca6e5357-707f-4565-bbbd-b3ab732597c6"
	planTrial = "7d55d31d-35ae-4438-bf13-6ffdfa107d9f"

	planAzureLite      = "8cb22518-aa26-44c5-91a0-e669ec9bf443"
	planConvergedCloud = "03b812ac-c991-4528-b5bd-08b303523a63"
	planFree           = "b1a5764e-2ea1-4f95-94c0-2b4538b37b55"
	planOwnCluster     = "03e3cb66-a4c6-4c6a-b4b0-5d42224debea"
	planPreview        = "5cb3d976-b85c-42ea-a636-79cadda109a9"
)

const (
	user     = "tester"
	password = "secret"
	// patience is how long anything may take before a test gives up on it.
	patience = 4 * time.Minute
	// look is how often a test looks at what it waits for.
	look = 100 * time.Millisecond
)

// platform orders instances as a platform does.
type platform struct {
	testing.TB

	url            string
	user, password string
	// client sends the requests, instead of the standard one.
	client *http.Client
}

// answer is a status with the body, decoded.
type answer struct {
	Status int
	Header http.Header
	Body   map[string]any
}

func (a answer) text(field string) string {
	text, _ := a.Body[field].(string)

	return text
}

// try sends a request. An error means that the broker is not there.
func (p platform) try(method, path string, body any) (answer, error) {
	p.Helper()

	encoded, err := json.Marshal(body)
	if err != nil {
		p.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, method, p.url+path, bytes.NewReader(encoded))
	if err != nil {
		p.Fatal(err)
	}

	request.SetBasicAuth(p.user, p.password)
	request.Header.Set("X-Broker-API-Version", "2.17")
	request.Header.Set("Content-Type", "application/json")

	response, err := cmp.Or(p.client, http.DefaultClient).Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer response.Body.Close()

	content, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", method, path, err)
	}

	decoded := answer{Status: response.StatusCode, Header: response.Header}
	if err := json.Unmarshal(content, &decoded.Body); err != nil {
		return answer{}, fmt.Errorf("%s %s answered %q: %w", method, path, content, err)
	}

	return decoded, nil
}

// send sends a request and expects the status.
func (p platform) send(method, path string, body any, want int) answer {
	p.Helper()

	got, err := p.try(method, path, body)
	if err != nil {
		p.Fatal(err)
	}

	if got.Status != want {
		p.Fatalf("%s %s answered %d %v, want %d", method, path, got.Status, got.Body, want)
	}

	return got
}

func instancePath(id string) string { return "/v2/service_instances/" + id }

func removalPath(id, planID string) string {
	return instancePath(id) + "?accepts_incomplete=true&service_id=" + serviceID + "&plan_id=" + planID
}

func orderOf(planID string) map[string]any {
	return map[string]any{
		"service_id": serviceID, "plan_id": planID, "organization_guid": "organization-1", "space_guid": "space-1", "parameters": nil,
	}
}

// create orders an instance and returns the operation.
func (p platform) create(id, planID string) string {
	p.Helper()

	return p.send(http.MethodPut, instancePath(id)+"?accepts_incomplete=true", orderOf(planID), http.StatusAccepted).text("operation")
}

// remove orders the removal of an instance and returns the operation.
func (p platform) remove(id, planID string) string {
	p.Helper()

	return p.send(http.MethodDelete, removalPath(id, planID), nil, http.StatusAccepted).text("operation")
}

// succeeded polls until the instance's operation has succeeded. A broker that is away meanwhile is waited for.
func (p platform) succeeded(id string) {
	p.Helper()

	last := p.poll(id, func(got answer) bool { return got.text("state") != "in progress" })
	if last.text("state") != "succeeded" {
		p.Fatalf("the operation on %s ended with %d %v", id, last.Status, last.Body)
	}
}

// gone polls until the instance is gone.
func (p platform) gone(id string) {
	p.Helper()

	last := p.poll(id, func(got answer) bool { return got.text("state") != "in progress" })
	if last.Status != http.StatusGone {
		p.Fatalf("the removal of %s ended with %d %v", id, last.Status, last.Body)
	}
}

// poll asks for the last operation until enough says so.
func (p platform) poll(id string, enough func(answer) bool) answer {
	p.Helper()

	var last answer

	p.until("the operation on "+id, func() bool {
		got, err := p.try(http.MethodGet, instancePath(id)+"/last_operation", nil)
		if err != nil || got.Status == http.StatusServiceUnavailable {
			return false
		}

		last = got

		return enough(got)
	})

	return last
}

// until looks until it holds.
func (p platform) until(what string, holds func() bool) {
	p.Helper()

	if !within(patience, holds) {
		p.Fatalf("waited %s for %s", patience, what)
	}
}

// within looks until it holds, for no longer than that, and reports whether it did.
func within(limit time.Duration, holds func() bool) bool {
	ticker := time.NewTicker(look)
	defer ticker.Stop()

	for deadline := time.Now().Add(limit); time.Now().Before(deadline); <-ticker.C {
		if holds() {
			return true
		}
	}

	return holds()
}

// kubeconfig asks as an operator for access to the runtime of an instance.
func (p platform) kubeconfig(id string) []byte {
	p.Helper()

	return []byte(p.send(http.MethodPost, "/runtimes/"+id+"/adminkubeconfig", nil, http.StatusOK).text("kubeconfig"))
}
