package kymacompat

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/test/kymacompat/provisioner"
)

const (
	serviceID = "47c9dcbf-ff30-448e-ab36-d3bad66ba281"
	planAWS   = "361c511f-f939-4621-b228-d0fb79a1fe15"
	planAzure = "4deee563-e5ec-4731-b9b1-53b42d855f0c"
	planGCP   = "ca6e5357-707f-4565-bbbd-b3ab732597c6"
	planTrial = "7d55d31d-35ae-4438-bf13-6ffdfa107d9f"

	user     = "tester"
	password = "secret"
)

// platform orders instances of our broker, which has its runtimes from a former Provisioner.
type platform struct {
	*testing.T

	url    string
	former *provisioner.Provisioner
}

// start runs our broker before a former Provisioner whose operations take the time.
func start(t *testing.T, fresh database, takes time.Duration, changes ...func(*broker.Config)) platform {
	t.Helper()

	former, closed, err := provisioner.Start(takes)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(closed)

	settings := broker.DefaultConfig()
	settings.Address, settings.StatusAddress = "127.0.0.1:0", "127.0.0.1:0"
	settings.ShutdownDelay = 0
	settings.Database = fresh(t, "broker")
	settings.Provisioner.URL = former.URL
	settings.AuthBasicUsers = user + ":" + password + ":osb+admin"

	for _, change := range changes {
		change(&settings)
	}

	service, err := broker.New(t.Context(), settings, logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	run(t, service.Run)

	return platform{T: t, url: "http://" + service.Address(), former: former}
}

// reply is a status with the body, decoded.
type reply struct {
	Status int
	Body   map[string]any
}

func (r reply) text(field string) string {
	text, _ := r.Body[field].(string)

	return text
}

func (p platform) send(method, path string, body any) reply {
	p.Helper()

	text, err := json.Marshal(body)
	if err != nil {
		p.Fatal(err)
	}

	request, err := http.NewRequestWithContext(p.Context(), method, p.url+"/v2/service_instances/"+path, bytes.NewReader(text))
	if err != nil {
		p.Fatal(err)
	}

	request.SetBasicAuth(user, password)
	request.Header.Set("X-Broker-API-Version", "2.17")
	request.Header.Set("Content-Type", "application/json")

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.Fatal(err)
	}
	defer response.Body.Close()

	content, err := io.ReadAll(response.Body)
	if err != nil {
		p.Fatal(err)
	}

	got := reply{Status: response.StatusCode}
	if err := json.Unmarshal(content, &got.Body); err != nil {
		p.Fatalf("%s %s answered %d %s", method, path, got.Status, content)
	}

	return got
}

// accepted sends what an operation has to carry out.
func (p platform) accepted(method, path string, body any) {
	p.Helper()

	if got := p.send(method, path, body); got.Status != http.StatusAccepted {
		p.Fatalf("%s %s answered %d %v", method, path, got.Status, got.Body)
	}
}

func (p platform) create(id, plan string) {
	p.Helper()
	p.accepted(http.MethodPut, id+"?accepts_incomplete=true", orderOf(plan))
}

func orderOf(plan string) map[string]any {
	return map[string]any{
		"service_id": serviceID, "plan_id": plan, "organization_guid": "organization-1", "space_guid": "space-1",
	}
}

// change updates an instance, or, by its context, suspends and resumes it.
func (p platform) change(id string, what map[string]any) {
	p.Helper()

	what["service_id"] = serviceID
	p.accepted(http.MethodPatch, id+"?accepts_incomplete=true", what)
}

func (p platform) remove(id, plan string) {
	p.Helper()
	p.accepted(http.MethodDelete, id+"?accepts_incomplete=true&service_id="+serviceID+"&plan_id="+plan, nil)
}

// ended polls until the last operation has ended, and returns what is told of it.
func (p platform) ended(id string) reply {
	p.Helper()

	ticker := time.NewTicker(look)
	defer ticker.Stop()

	for deadline := time.Now().Add(patience); ; <-ticker.C {
		got := p.send(http.MethodGet, id+"/last_operation", nil)
		if got.text("state") != "in progress" {
			return got
		}

		if time.Now().After(deadline) {
			p.Fatalf("the operation on %s goes on: %v", id, got.Body)
		}
	}
}

func (p platform) succeeded(id string) {
	p.Helper()

	if got := p.ended(id); got.text("state") != "succeeded" {
		p.Fatalf("the operation on %s ended with %d %v", id, got.Status, got.Body)
	}
}

func (p platform) gone(id string) {
	p.Helper()

	if got := p.ended(id); got.Status != http.StatusGone {
		p.Fatalf("the removal of %s ended with %d %v", id, got.Status, got.Body)
	}
}
