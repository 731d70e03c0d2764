package osb

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/test/harness"
)

// rowEndpoints fetches a binding with its endpoints, which version 2.15 of the API introduced. Clients of version 2.14 get no
// endpoints, because the Kubernetes client library fails to decode string ports.
func rowEndpoints(r *row) {
	id := r.createInstance()
	created := r.createBinding(id, "b")

	if old := r.want("a fetch with version 2.14", r.do(harness.Call{
		Method: http.MethodGet, Path: harness.BindingPath(id, "b"), Header: header(harness.VersionHeader, "2.14"),
	}), http.StatusOK); old.Body["endpoints"] != nil {
		r.Errorf("a client of version 2.14 gets endpoints: %v", old.Body["endpoints"])
	}

	endpoints, _ := created.Body["endpoints"].([]any)
	if len(endpoints) == 0 {
		r.Fatalf("the binding has no endpoint: %v", created.Body["endpoints"])
	}

	for _, each := range endpoints {
		endpoint, _ := each.(map[string]any)
		host, _ := endpoint["host"].(string)
		ports, _ := endpoint["ports"].([]any)

		if host == "" || len(ports) == 0 || !strings.Contains(r.clusterConfig(created).Host, host) {
			r.Errorf("the endpoint %v does not match the credentials, %s", endpoint, r.clusterConfig(created).Host)
		}

		for _, port := range ports {
			if text, isText := port.(string); !isText || !regexp.MustCompile(`^\d+(-\d+)?$`).MatchString(text) {
				r.Errorf("the port %v is not a string with a number or range", port)
			}
		}
	}
}

// rowNoDrainAndRoute checks that bindings have no log drain and no route service. The catalog must not require permissions for
// them; rowRequiresNoPermission checks that.
func rowNoDrainAndRoute(r *row) {
	created := r.createBinding(r.createInstance(), "b")
	for _, field := range []string{"syslog_drain_url", "route_service_url"} {
		if value, given := created.Body[field]; given {
			r.Errorf("%s is %v", field, value)
		}
	}
}

func rowNoVolumeMounts(r *row) {
	if created := r.createBinding(r.createInstance(), "b"); created.Body["volume_mounts"] != nil {
		r.Errorf("the binding has volume mounts: %v", created.Body["volume_mounts"])
	}
}

func rowBindingRotation(r *row) {
	id, other := r.createInstance(), r.createInstance()
	parameters := fields{"parameters": fields{"expiration_seconds": 900}}
	old := r.createBinding(id, "old", parameters)
	r.createBinding(other, "foreign")

	bodies := map[string]string{
		"full":  r.binding(fields{"predecessor_binding_id": "old"}),
		"short": encode(fields{"predecessor_binding_id": "old"}),
	}

	for name, body := range bodies {
		r.wantSucceeded(harness.BindingPath(id, name), r.want("a rotation, "+name, r.bind(id, name, body), http.StatusAccepted).Text("operation"))

		rotated := r.want("a fetch", r.get(harness.BindingPath(id, name)), http.StatusOK)
		if encode(rotated.Body["parameters"]) != encode(old.Body["parameters"]) {
			r.Errorf("the parameters differ from the predecessor's parameters: %v", rotated.Body["parameters"])
		}

		r.wantAccess("the new credentials work", rotated)
		r.wantAccess("the old credentials still work", old)
	}

	r.wantUnchanged([]string{harness.BindingPath(id, "refused")}, func() {
		for _, predecessor := range []any{"unknown", "foreign", "refused", 5} { // a binding cannot replace itself
			r.wantRejected(harness.Call{
				Method: http.MethodPut, Path: harness.BindingPath(id, "refused") + harness.Incomplete,
				Body: r.binding(fields{"predecessor_binding_id": predecessor}),
			})
		}
	})
}

func rowExpiryTimes(r *row) {
	created := r.createBinding(r.createInstance(), "b")
	form := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$`)
	expires, _ := created.Object("metadata")["expires_at"].(string)
	renew, _ := created.Object("metadata")["renew_before"].(string)

	if !form.MatchString(expires) || !form.MatchString(renew) {
		r.Fatalf("expires_at is %q, renew_before %q", expires, renew)
	}

	end, _ := time.Parse(time.RFC3339Nano, expires)
	before, _ := time.Parse(time.RFC3339Nano, renew)

	if !before.Before(end) || !before.After(time.Now()) {
		r.Errorf("renew_before %s is not between now and expires_at %s", renew, expires)
	}
}

// rowCredentialsSuffice connects to the cluster with the credentials of a binding, without its metadata.
func rowCredentialsSuffice(r *row) {
	created := r.createBinding(r.createInstance(), "b")
	delete(created.Body, "metadata")
	r.wantAccess("the credentials suffice", created)
}

func rowBindOperationIsShort(r *row) {
	operation := r.want("a bind", r.bind(r.createInstance(), "b", r.binding()), http.StatusAccepted).Text("operation")
	if operation == "" || len(operation) > maxOperationLength {
		r.Errorf("the operation is %q", operation)
	}
}

func rowBindParametersAreValidated(r *row) {
	id := r.createInstance()

	for reason, parameters := range map[string]fields{
		"unknown name": {"unknown": 1}, "wrong type": {"expiration_seconds": "long"}, "too short": {"expiration_seconds": 599},
		"too long": {"expiration_seconds": 7201}, "not an integer": {"expiration_seconds": 600.5}, "unknown role": {"role": "god"},
	} {
		r.want(reason, r.bind(id, "b", r.binding(fields{"parameters": parameters})), http.StatusBadRequest)
	}

	r.want("nothing was created", r.get(harness.BindingPath(id, "b")), http.StatusNotFound)
}

func rowBindOfUnknownInstanceIs404(r *row) {
	id := r.newID()
	r.want("an unknown instance", r.bind(id, "b", r.binding()), http.StatusNotFound)
	r.want("a synchronous bind of an unknown instance", r.bindNow(id, "b", r.binding()), http.StatusNotFound)

	lift := r.hold(callOrder)
	defer lift()

	r.want("an order", r.put(id, r.order()), http.StatusAccepted)
	r.wantRejected(harness.Call{Method: http.MethodPut, Path: harness.BindingPath(id, "b") + harness.Incomplete, Body: r.binding()})
}

// rowUnbindablePlanIsRejected binds an instance of plan own_cluster, which is not bindable. The instance uses the cluster of
// another instance.
func rowUnbindablePlanIsRejected(r *row) {
	var planID string

	r.eachPlan(func(offering offering, plan plan) {
		if !offering.bindable(plan) {
			planID = plan.ID
		}
	})

	if planID == "" {
		return // there is nothing to test, because all plans are bindable
	}

	other := r.createInstance()
	kubeconfig := r.want("a kubeconfig for administrators", r.do(harness.Call{
		Method: http.MethodPost, Path: "/runtimes/" + other + "/adminkubeconfig",
	}), http.StatusOK).Text("kubeconfig")

	id := r.createInstance(fields{"plan_id": planID, "parameters": ownCluster(kubeconfig)})
	r.wantOneOf("a bind", r.bind(id, "b", r.binding(fields{"plan_id": planID})), http.StatusBadRequest, http.StatusUnprocessableEntity)
	r.wantOneOf("a synchronous bind", r.bindNow(id, "b", r.binding(fields{"plan_id": planID})), http.StatusBadRequest,
		http.StatusUnprocessableEntity)
}

// rowCredentialsExpire checks that the token of a binding expires with the binding.
func rowCredentialsExpire(r *row) {
	created := r.createBinding(r.createInstance(), "b", fields{"parameters": fields{"expiration_seconds": 600}})
	expires, _ := created.Object("metadata")["expires_at"].(string)

	end, err := time.Parse(time.RFC3339Nano, expires)
	if err != nil {
		r.Fatalf("expires_at is %q", expires)
	}

	const tolerance = 5 * time.Second
	if token := r.tokenExpiry(created); token.After(end.Add(tolerance)) || time.Until(end) > 600*time.Second+tolerance {
		r.Errorf("the token expires at %s, the binding at %s", token, end)
	}
}
