package broker_test

import (
	"testing"
)

func TestG20G21H1H5I2C14BindingsAreNotOffered(t *testing.T) {
	b := newBench(t)
	b.provisioned(instanceID)

	binding := path(instanceID) + "/service_bindings/b"
	body := `{"service_id":"` + serviceID + `","plan_id":"` + planAWS + `","app_guid":"","bind_resource":{}}`

	b.want("G21: not bindable", b.do(call{method: "PUT", path: binding + "?accepts_incomplete=true", body: body}), 422)
	b.want("G20: an unknown instance", b.do(call{method: "PUT", path: path("unknown") + "/service_bindings/b", body: body}), 404)
	b.want("H1: ids are needed", b.do(call{method: "DELETE", path: binding}), 400)
	b.want("H5: no binding was ever made", b.do(call{method: "DELETE", path: binding + "?" + ids[1:]}), 410)
	b.want("I2: nor can one be fetched", b.do(call{method: "GET", path: binding}), 404)
	b.want("C14: nor polled", b.do(call{method: "GET", path: binding + "/last_operation"}), 404)
}
