package osb

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/test/harness"
)

// poll asks for the last operation at the path of an instance or of a binding.
func (p platform) poll(path, operation string) harness.Reply {
	p.Helper()

	query := ""
	if operation != "" {
		query = "?operation=" + url.QueryEscape(operation)
	}

	return p.get(path + "/last_operation" + query)
}

// ended polls the operation until it has ended.
func (p platform) ended(path, operation string) harness.Reply {
	p.Helper()

	var last harness.Reply

	p.until("the end of the operation on "+path, func() bool {
		last = p.poll(path, operation)

		return last.Text("state") != "in progress"
	})

	return last
}

// succeeded polls the operation until it has ended, which has to be by success.
func (p platform) succeeded(path, operation string) {
	p.Helper()

	if last := p.ended(path, operation); last.Text("state") != "succeeded" {
		p.Fatalf("the operation on %s ended with %d %s", path, last.Status, last.Raw)
	}
}

// failed polls the operation until it has ended, which has to be by failure.
func (p platform) failed(path, operation string) harness.Reply {
	p.Helper()

	last := p.ended(path, operation)
	if last.Text("state") != "failed" {
		p.Fatalf("the operation on %s ended with %d %s", path, last.Status, last.Raw)
	}

	return last
}

// ready creates an instance and waits for it.
func (p platform) ready(changes ...fields) (id string) {
	p.Helper()

	id = p.newID()
	p.succeeded(harness.InstancePath(id), p.want("an order", p.put(id, p.order(changes...)), http.StatusAccepted).Text("operation"))

	return id
}

// updated changes an instance.
func (p platform) updated(id string, changes ...fields) {
	p.Helper()

	p.succeeded(harness.InstancePath(id), p.want("an update", p.update(id, p.patch(changes...)), http.StatusAccepted).Text("operation"))
}

// bound creates a binding of the instance, waits for it and fetches it.
func (p platform) bound(instance, binding string, changes ...fields) harness.Reply {
	p.Helper()

	operation := p.want("a bind", p.bind(instance, binding, p.binding(changes...)), http.StatusAccepted).Text("operation")
	p.succeeded(harness.BindingPath(instance, binding), operation)

	return p.want("a fetch of the binding", p.get(harness.BindingPath(instance, binding)), http.StatusOK)
}

// gone waits until the deletion at the path has ended.
func (p platform) gone(path, operation string) {
	p.Helper()

	if last := p.ended(path, operation); last.Status != http.StatusGone && last.Text("state") != "succeeded" {
		p.Fatalf("the deletion of %s ended with %d %s", path, last.Status, last.Raw)
	}
}

// removed deletes an instance and waits for the end.
func (p platform) removed(id string) {
	p.Helper()

	p.gone(harness.InstancePath(id), p.want("a deletion", p.remove(id), http.StatusAccepted).Text("operation"))
}

// until waits until the condition holds.
func (p platform) until(what string, condition func() bool) {
	p.Helper()
	harness.Until(p, what, condition)
}

// seen returns all that a platform can read of its resources: fetches and polls.
func (p platform) seen(paths ...string) string {
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

// unchanged fails the test if act changes what the platform can read of its resources.
func (p platform) unchanged(paths []string, act func()) {
	p.Helper()

	before := p.seen(paths...)

	act()

	if after := p.seen(paths...); before != after {
		p.Errorf("A15: a refused request has changed something:\nbefore %s\nafter  %s", before, after)
	}
}

// hold keeps the tenant's calls of a GraphQL operation from reaching the Provisioner until it is lifted.
func (p platform) hold(operation string) (lift func()) {
	return p.Proxy.Hold(harness.Match{Tenant: p.tenant, Operation: operation})
}

// refuse has the tenant's calls of a GraphQL operation fail for good until it is lifted.
func (p platform) refuse(operation string) (lift func()) {
	return p.Proxy.Inject(harness.Match{Tenant: p.tenant, Operation: operation}, harness.Refuse)
}
