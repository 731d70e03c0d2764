package osb

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/environment-broker/environment-broker/test/harness"
)

// counter makes tenants and IDs unique across all platforms.
var counter atomic.Int64

// platform is a platform with its own tenant, so its faults and instances do not affect other tests.
type platform struct {
	harness.Reporter
	*env

	tenant string
}

func newPlatform(reporter harness.Reporter, e *env) platform {
	return platform{Reporter: reporter, env: e, tenant: "tenant-" + strconv.FormatInt(counter.Add(1), 10)}
}

// newID returns an unused ID.
func (p platform) newID() string { return "id-" + strconv.FormatInt(counter.Add(1), 10) }

// do sends a call and checks the requirements that apply to every response. Failure messages name the violated row.
func (p platform) do(call harness.Call) harness.Reply {
	p.Helper()

	start := time.Now()

	got, err := send(p.Broker.Endpoint, call)
	if err != nil {
		p.Fatalf("%s %s: %v", call.Method, call.Path, err)
	}

	if took := time.Since(start); took > responseLimit {
		p.Errorf("A21: %s %s: the response took %s", call.Method, call.Path, took)
	}

	checkResponse(p, call, got)

	if got.Status >= http.StatusInternalServerError {
		p.Errorf("J18: %s %s: status %d although no dependency of the broker failed: %s", call.Method, call.Path, got.Status, got.Raw)
	}

	return got
}

// want fails the test unless the response has the status and, if given, the error code. It returns the response.
func (p platform) want(reason string, got harness.Reply, status int, code ...string) harness.Reply {
	p.Helper()

	if got.Status != status || len(code) > 0 && got.Text("error") != code[0] {
		p.Fatalf("%s: want %d %v, got %d %s", reason, status, code, got.Status, got.Raw)
	}

	return got
}

// wantOneOf fails the test unless the response has one of the statuses. It returns the response.
func (p platform) wantOneOf(reason string, got harness.Reply, statuses ...int) harness.Reply {
	p.Helper()

	if !slices.Contains(statuses, got.Status) {
		p.Fatalf("%s: want one of %v, got %d %s", reason, statuses, got.Status, got.Raw)
	}

	return got
}

// fields is a JSON object in a request.
type fields map[string]any

// order returns the body of a valid provision request with the changes applied. A nil value removes a field.
func (p platform) order(changes ...fields) string {
	return encode(change(fields{
		"service_id": harness.ServiceID, "plan_id": harness.PlanAWS, "organization_guid": p.tenant, "space_guid": "space-1",
		"context":    fields{"platform": "cloudfoundry", "organization_guid": p.tenant, "space_guid": "space-1", "instance_name": "mine"},
		"parameters": fields{"region": "eu-west-1", "autoScalerMin": 4},
	}, changes...))
}

// binding returns the body of a valid bind request with the changes applied.
func (p platform) binding(changes ...fields) string {
	return encode(change(fields{"service_id": harness.ServiceID, "plan_id": harness.PlanAWS}, changes...))
}

// patch returns the body of a valid update of one parameter with the changes applied.
func (p platform) patch(changes ...fields) string {
	return encode(change(fields{"service_id": harness.ServiceID, "parameters": fields{"autoScalerMax": 12}}, changes...))
}

// change merges the changes into the object and removes fields that are nil.
func change(object fields, changes ...fields) fields {
	for _, change := range changes {
		maps.Copy(object, change)
	}

	maps.DeleteFunc(object, func(_ string, value any) bool { return value == nil })

	return object
}

// ids is the query with the service ID and the plan ID of an instance.
const ids = "service_id=" + harness.ServiceID + "&plan_id=" + harness.PlanAWS

func (p platform) get(path string) harness.Reply {
	p.Helper()

	return p.do(harness.Call{Method: http.MethodGet, Path: path})
}

func (p platform) put(id, body string) harness.Reply {
	p.Helper()

	return p.do(harness.Call{Method: http.MethodPut, Path: harness.InstancePath(id) + harness.Incomplete, Body: body})
}

func (p platform) update(id, body string) harness.Reply {
	p.Helper()

	return p.do(harness.Call{Method: http.MethodPatch, Path: harness.InstancePath(id) + harness.Incomplete, Body: body})
}

func (p platform) remove(id string) harness.Reply {
	p.Helper()

	return p.do(harness.Call{Method: http.MethodDelete, Path: harness.InstancePath(id) + harness.Incomplete + "&" + ids})
}

// bind creates a binding asynchronously.
func (p platform) bind(instance, binding, body string) harness.Reply {
	p.Helper()

	return p.do(harness.Call{Method: http.MethodPut, Path: harness.BindingPath(instance, binding) + harness.Incomplete, Body: body})
}

// bindNow creates a binding synchronously.
func (p platform) bindNow(instance, binding, body string) harness.Reply {
	p.Helper()

	return p.do(harness.Call{Method: http.MethodPut, Path: harness.BindingPath(instance, binding), Body: body})
}

// unbind removes a binding asynchronously.
func (p platform) unbind(instance, binding string) harness.Reply {
	p.Helper()

	return p.do(harness.Call{Method: http.MethodDelete, Path: harness.BindingPath(instance, binding) + harness.Incomplete + "&" + ids})
}
