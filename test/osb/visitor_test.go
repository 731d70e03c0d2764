package osb

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
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

	got, err := v.send(call)
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

	if !slices.Contains(statuses, got.Status) {
		v.Fatalf("%s: want one of %v, got %d %s", reason, statuses, got.Status, got.Raw)
	}

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
