package osb

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// poll asks for the last operation at the path of an instance or of a binding.
func (v visitor) poll(path, operation string) reply {
	v.Helper()

	query := ""
	if operation != "" {
		query = "?operation=" + url.QueryEscape(operation)
	}

	return v.get(path + "/last_operation" + query)
}

// ended polls the operation until it has ended.
func (v visitor) ended(path, operation string) reply {
	v.Helper()

	var last reply

	v.until("the end of the operation on "+path, func() bool {
		last = v.poll(path, operation)

		return last.text("state") != "in progress"
	})

	return last
}

// succeeded polls the operation until it has ended, which has to be by success.
func (v visitor) succeeded(path, operation string) {
	v.Helper()

	if last := v.ended(path, operation); last.text("state") != "succeeded" {
		v.Fatalf("the operation on %s ended with %d %s", path, last.Status, last.Raw)
	}
}

// failed polls the operation until it has ended, which has to be by failure.
func (v visitor) failed(path, operation string) reply {
	v.Helper()

	last := v.ended(path, operation)
	if last.text("state") != "failed" {
		v.Fatalf("the operation on %s ended with %d %s", path, last.Status, last.Raw)
	}

	return last
}

// ready makes an instance.
func (v visitor) ready(changes ...fields) (id string) {
	v.Helper()

	id = v.newID()
	v.succeeded(instancePath(id), v.want("an order", v.put(id, v.order(changes...)), http.StatusAccepted).text("operation"))

	return id
}

// updated changes an instance.
func (v visitor) updated(id string, changes ...fields) {
	v.Helper()

	v.succeeded(instancePath(id), v.want("an update", v.update(id, v.patch(changes...)), http.StatusAccepted).text("operation"))
}

// bound makes a binding of the instance and returns it as it is fetched.
func (v visitor) bound(instance, binding string, changes ...fields) reply {
	v.Helper()

	operation := v.want("a bind", v.bind(instance, binding, v.binding(changes...)), http.StatusAccepted).text("operation")
	v.succeeded(bindingPath(instance, binding), operation)

	return v.want("a fetch of the binding", v.get(bindingPath(instance, binding)), http.StatusOK)
}

// gone waits until the deletion at the path has ended.
func (v visitor) gone(path, operation string) {
	v.Helper()

	if last := v.ended(path, operation); last.Status != http.StatusGone && last.text("state") != "succeeded" {
		v.Fatalf("the deletion of %s ended with %d %s", path, last.Status, last.Raw)
	}
}

// removed deletes an instance and waits for the end of it.
func (v visitor) removed(id string) {
	v.Helper()

	v.gone(instancePath(id), v.want("a deletion", v.remove(id), http.StatusAccepted).text("operation"))
}

// until looks until it holds.
func (v visitor) until(what string, holds func() bool) {
	v.Helper()

	ticker := time.NewTicker(look)
	defer ticker.Stop()

	for deadline := time.Now().Add(patience); !holds(); <-ticker.C {
		if time.Now().After(deadline) {
			v.Fatalf("waited %s for %s", patience, what)
		}
	}
}

// seen is what a platform can see of its resources: fetches and polls of them.
func (v visitor) seen(paths ...string) string {
	v.Helper()

	var all strings.Builder

	for _, path := range paths {
		for _, each := range []string{path, path + "/last_operation"} {
			got := v.get(each)
			all.WriteString(each + " " + strconv.Itoa(got.Status) + " " + got.Raw)
		}
	}

	return all.String()
}

// unchanged fails the test if the platform sees something else of its resources after it has acted.
func (v visitor) unchanged(paths []string, act func()) {
	v.Helper()

	before := v.seen(paths...)

	act()

	if after := v.seen(paths...); before != after {
		v.Errorf("A15: a refused request has changed something:\nbefore %s\nafter  %s", before, after)
	}
}

// hold keeps a call of the tenant's operations to the Provisioner from arriving until the returned function is called.
func (v visitor) hold(call string) (lift func()) { return v.road.hold(v.tenant, call) }

// refuse has the Provisioner refuse a call of the tenant's operations until the returned function is called.
func (v visitor) refuse(call string) (lift func()) { return v.road.refuse(v.tenant, call) }
