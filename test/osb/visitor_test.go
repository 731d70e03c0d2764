package osb

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Ids of the catalog that tests order by. B8 holds all of them against what was published.
const (
	serviceID = "47c9dcbf-ff30-448e-ab36-d3bad66ba281"
	planAWS   = "361c511f-f939-4621-b228-d0fb79a1fe15"
	planAzure = "4deee563-e5ec-4731-b9b1-53b42d855f0c"
	planGCP   = "ca6e5357-707f-4565-bbbd-b3ab732597c6"
	planTrial = "7d55d31d-35ae-4438-bf13-6ffdfa107d9f"
)

// visits makes tenants and ids of all visitors differ.
var visits atomic.Int64

// visitor is a platform of a tenant of its own: no trouble that it orders, and no instance of it, is anybody else's.
type visitor struct {
	judge
	*landscape

	tenant string
}

func newVisitor(j judge, l *landscape) visitor {
	return visitor{judge: j, landscape: l, tenant: "tenant-" + strconv.FormatInt(visits.Add(1), 10)}
}

// newID is an id that nobody has.
func (v visitor) newID() string { return "id-" + strconv.FormatInt(visits.Add(1), 10) }

// do sends a call and checks what holds for every answer.
func (v visitor) do(call call) reply {
	v.Helper()

	began := time.Now()

	got, err := v.platform.send(call)
	if err != nil {
		v.Fatalf("%s %s: %v", call.method, call.path, err)
	}

	if took := time.Since(began); took > promptly {
		v.Errorf("A21: %s %s: the answer took %s", call.method, call.path, took)
	}

	checkAnswer(v, call, got)

	if got.Status >= http.StatusInternalServerError {
		v.Errorf("J18: %s %s: status %d without a fault of what the broker needs: %s", call.method, call.path, got.Status, got.Raw)
	}

	return got
}

// want fails the test unless the answer has the status and, if one is given, the code.
func (v visitor) want(reason string, got reply, status int, code ...string) reply {
	v.Helper()

	if got.Status != status || len(code) > 0 && got.text("error") != code[0] {
		v.Fatalf("%s: want %d %v, got %d %s", reason, status, code, got.Status, got.Raw)
	}

	return got
}

// wantOneOf fails the test unless the answer has one of the statuses.
func (v visitor) wantOneOf(reason string, got reply, statuses ...int) reply {
	v.Helper()

	for _, status := range statuses {
		if got.Status == status {
			return got
		}
	}

	v.Fatalf("%s: want one of %v, got %d %s", reason, statuses, got.Status, got.Raw)

	return got
}

// fields is a JSON object of a request.
type fields map[string]any

// order is the body of a provision that succeeds, with fields replaced or, by nil, taken away.
func (v visitor) order(changes ...fields) string {
	return encode(change(fields{
		"service_id": serviceID, "plan_id": planAWS, "organization_guid": v.tenant, "space_guid": "space-1",
		"context":    fields{"platform": "cloudfoundry", "organization_guid": v.tenant, "space_guid": "space-1", "instance_name": "mine"},
		"parameters": fields{"region": "eu-west-1", "autoScalerMin": 4},
	}, changes...))
}

// binding is the body of a bind that succeeds, changed like order.
func (v visitor) binding(changes ...fields) string {
	return encode(change(fields{"service_id": serviceID, "plan_id": planAWS}, changes...))
}

// patch is the body of an update that changes a parameter, changed like order.
func (v visitor) patch(changes ...fields) string {
	return encode(change(fields{"service_id": serviceID, "parameters": fields{"autoScalerMax": 12}}, changes...))
}

func change(object fields, changes ...fields) fields {
	for _, change := range changes {
		maps.Copy(object, change)
	}

	maps.DeleteFunc(object, func(_ string, value any) bool { return value == nil })

	return object
}

const (
	incomplete = "?accepts_incomplete=true"
	ids        = "service_id=" + serviceID + "&plan_id=" + planAWS
)

func instancePath(id string) string { return "/v2/service_instances/" + id }

func bindingPath(instance, binding string) string {
	return instancePath(instance) + "/service_bindings/" + binding
}

func (v visitor) get(path string) reply {
	v.Helper()

	return v.do(call{method: http.MethodGet, path: path})
}

func (v visitor) put(id, body string) reply {
	v.Helper()

	return v.do(call{method: http.MethodPut, path: instancePath(id) + incomplete, body: body})
}

func (v visitor) update(id, body string) reply {
	v.Helper()

	return v.do(call{method: http.MethodPatch, path: instancePath(id) + incomplete, body: body})
}

func (v visitor) remove(id string) reply {
	v.Helper()

	return v.do(call{method: http.MethodDelete, path: instancePath(id) + incomplete + "&" + ids})
}

// bind orders a binding that may be made later.
func (v visitor) bind(instance, binding, body string) reply {
	v.Helper()

	return v.do(call{method: http.MethodPut, path: bindingPath(instance, binding) + incomplete, body: body})
}

// bindNow orders a binding that has to be there with the answer.
func (v visitor) bindNow(instance, binding, body string) reply {
	v.Helper()

	return v.do(call{method: http.MethodPut, path: bindingPath(instance, binding), body: body})
}

// unbind orders the removal of a binding, which may happen later.
func (v visitor) unbind(instance, binding string) reply {
	v.Helper()

	return v.do(call{method: http.MethodDelete, path: bindingPath(instance, binding) + incomplete + "&" + ids})
}

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
