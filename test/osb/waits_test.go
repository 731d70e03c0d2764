package osb

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/test/harness"
)

// poll fetches the last operation of the instance or binding at the path.
func (p platform) poll(path, operation string) harness.Reply {
	p.Helper()

	query := ""
	if operation != "" {
		query = "?operation=" + url.QueryEscape(operation)
	}

	return p.get(path + "/last_operation" + query)
}

// waitForEnd polls the operation until it has ended and returns the last response.
func (p platform) waitForEnd(path, operation string) harness.Reply {
	p.Helper()

	var last harness.Reply

	p.until("the end of the operation on "+path, func() bool {
		last = p.poll(path, operation)

		return last.Text("state") != "in progress"
	})

	return last
}

// wantSucceeded waits until the operation has ended, and fails the test unless it succeeded.
func (p platform) wantSucceeded(path, operation string) {
	p.Helper()

	if last := p.waitForEnd(path, operation); last.Text("state") != "succeeded" {
		p.Fatalf("the operation on %s ended with %d %s, want succeeded", path, last.Status, last.Raw)
	}
}

// wantFailed waits until the operation has ended, fails the test unless the operation failed, and returns the last poll
// response.
func (p platform) wantFailed(path, operation string) harness.Reply {
	p.Helper()

	last := p.waitForEnd(path, operation)
	if last.Text("state") != "failed" {
		p.Fatalf("the operation on %s ended with %d %s, want failed", path, last.Status, last.Raw)
	}

	return last
}

func (p platform) createInstance(changes ...fields) (id string) {
	p.Helper()

	id = p.newID()
	p.wantSucceeded(harness.InstancePath(id), p.want("an order", p.put(id, p.order(changes...)), http.StatusAccepted).Text("operation"))

	return id
}

func (p platform) updateInstance(id string, changes ...fields) {
	p.Helper()

	p.wantSucceeded(harness.InstancePath(id), p.want("an update", p.update(id, p.patch(changes...)), http.StatusAccepted).Text("operation"))
}

// createBinding creates a binding asynchronously, waits until the binding is ready, and returns the response of a fetch.
func (p platform) createBinding(instance, binding string, changes ...fields) harness.Reply {
	p.Helper()

	operation := p.want("a bind", p.bind(instance, binding, p.binding(changes...)), http.StatusAccepted).Text("operation")
	p.wantSucceeded(harness.BindingPath(instance, binding), operation)

	return p.want("a fetch of the binding", p.get(harness.BindingPath(instance, binding)), http.StatusOK)
}

// wantGone waits until the deletion at the path has ended, and fails the test unless the deletion succeeded.
func (p platform) wantGone(path, operation string) {
	p.Helper()

	if last := p.waitForEnd(path, operation); last.Status != http.StatusOK || last.Text("state") != "succeeded" {
		p.Fatalf("the deletion of %s ended with %d %s, want success", path, last.Status, last.Raw)
	}
}

func (p platform) deleteInstance(id string) {
	p.Helper()

	p.wantGone(harness.InstancePath(id), p.want("a deletion", p.remove(id), http.StatusAccepted).Text("operation"))
}

// until waits until the condition is true. After a timeout it fails the test with a message that contains what.
func (p platform) until(what string, condition func() bool) {
	p.Helper()
	harness.Until(p, what, condition)
}

// snapshot returns the responses to a fetch and a poll of each resource.
func (p platform) snapshot(paths ...string) string {
	p.Helper()

	var all strings.Builder

	for _, path := range paths {
		for _, each := range []string{path, path + "/last_operation"} {
			got := p.get(each)
			all.WriteString(each + " " + strconv.Itoa(got.Status) + " " + got.Raw)
		}
	}

	return all.String()
}

// wantUnchanged fails the test if sendRequests changes the responses to fetches and polls of the resources.
func (p platform) wantUnchanged(paths []string, sendRequests func()) {
	p.Helper()

	before := p.snapshot(paths...)

	sendRequests()

	if after := p.snapshot(paths...); before != after {
		p.Errorf("A15: a rejected request changed something:\nbefore %s\nafter  %s", before, after)
	}
}

// hold delays the tenant's calls to a GraphQL operation until lift is called. Held calls do not reach the Provisioner.
func (p platform) hold(operation string) (lift func()) {
	return p.Proxy.Hold(harness.Match{Tenant: p.tenant, Operation: operation})
}

// refuse makes the tenant's calls to a GraphQL operation fail permanently, until lift is called.
func (p platform) refuse(operation string) (lift func()) {
	return p.Proxy.Inject(harness.Match{Tenant: p.tenant, Operation: operation}, harness.Refuse)
}
