package osb

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/test/harness"
)

// rowEndpoints: endpoints came with 2.15. Clients of 2.14 get none: that of Kubernetes expects numbers as ports and fails on strings.
func rowEndpoints(r *row) {
	id := r.ready()
	made := r.bound(id, "b")

	if old := r.want("a fetch by 2.14", r.do(harness.Call{
		Method: http.MethodGet, Path: harness.BindingPath(id, "b"), Header: header(harness.VersionHeader, "2.14"),
	}), http.StatusOK); old.Body["endpoints"] != nil {
		r.Errorf("a client that does not know endpoints gets some: %v", old.Body["endpoints"])
	}

	endpoints, _ := made.Body["endpoints"].([]any)
	if len(endpoints) == 0 {
		r.Fatalf("there is no endpoint: %v", made.Body["endpoints"])
	}

	for _, each := range endpoints {
		endpoint, _ := each.(map[string]any)
		host, _ := endpoint["host"].(string)
		ports, _ := endpoint["ports"].([]any)

		if host == "" || len(ports) == 0 || !strings.Contains(r.access(made).Host, host) {
			r.Errorf("the endpoint %v is not that of the credentials, %s", endpoint, r.access(made).Host)
		}

		for _, port := range ports {
			if text, isText := port.(string); !isText || !regexp.MustCompile(`^\d+(-\d+)?$`).MatchString(text) {
				r.Errorf("the port %v is no text with a number", port)
			}
		}
	}
}

// rowNoDrainAndRoute and rowNoVolumeMounts: the catalog requires no permission (B17), so no such field may be returned.
func rowNoDrainAndRoute(r *row) {
	made := r.bound(r.ready(), "b")
	for _, field := range []string{"syslog_drain_url", "route_service_url"} {
		if value, given := made.Body[field]; given {
			r.Errorf("%s is %v", field, value)
		}
	}
}

func rowNoVolumeMounts(r *row) {
	if made := r.bound(r.ready(), "b"); made.Body["volume_mounts"] != nil {
		r.Errorf("there are volume mounts: %v", made.Body["volume_mounts"])
	}
}

func rowBindingRotation(r *row) {
	id, other := r.ready(), r.ready()
	parameters := fields{"parameters": fields{"expiration_seconds": 900}}
	old := r.bound(id, "old", parameters)
	r.bound(other, "foreign")

	bodies := map[string]string{
		"full":  r.binding(fields{"predecessor_binding_id": "old"}),
		"short": encode(fields{"predecessor_binding_id": "old"}),
	}

	for name, body := range bodies {
		r.succeeded(harness.BindingPath(id, name), r.want("a rotation, "+name, r.bind(id, name, body), http.StatusAccepted).Text("operation"))

		rotated := r.want("a fetch", r.get(harness.BindingPath(id, name)), http.StatusOK)
		if encode(rotated.Body["parameters"]) != encode(old.Body["parameters"]) {
			r.Errorf("the parameters are not those of the predecessor: %v", rotated.Body["parameters"])
		}

		r.reaches("the new credentials work", rotated)
		r.reaches("the old credentials still work", old)
	}

	r.unchanged([]string{harness.BindingPath(id, "refused")}, func() {
		for reason, predecessor := range map[string]any{"unknown": "nobody", "of another instance": "foreign", "itself": "refused", "a number": 5} {
			r.rejected(harness.Call{
				Method: http.MethodPut, Path: harness.BindingPath(id, "refused") + harness.Incomplete,
				Body: r.binding(fields{"predecessor_binding_id": predecessor}),
			})
			_ = reason
		}
	})
}

func rowExpiryTimes(r *row) {
	made := r.bound(r.ready(), "b")
	form := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$`)
	expires, _ := made.Object("metadata")["expires_at"].(string)
	renew, _ := made.Object("metadata")["renew_before"].(string)

	if !form.MatchString(expires) || !form.MatchString(renew) {
		r.Fatalf("expires_at is %q, renew_before %q", expires, renew)
	}

	end, _ := time.Parse(time.RFC3339Nano, expires)
	before, _ := time.Parse(time.RFC3339Nano, renew)

	if !before.Before(end) || !before.After(time.Now()) {
		r.Errorf("there is no time to renew between %s and %s", renew, expires)
	}
}

// rowCredentialsSuffice connects with the credentials alone.
func rowCredentialsSuffice(r *row) {
	made := r.bound(r.ready(), "b")
	delete(made.Body, "metadata")
	r.reaches("the credentials are enough", made)
}

func rowBindOperationIsShort(r *row) {
	operation := r.want("a bind", r.bind(r.ready(), "b", r.binding()), http.StatusAccepted).Text("operation")
	if operation == "" || len(operation) > longestOperation {
		r.Errorf("the operation is %q", operation)
	}
}

func rowBindParametersAreValidated(r *row) {
	id := r.ready()

	for reason, parameters := range map[string]fields{
		"unknown name": {"unknown": 1}, "wrong type": {"expiration_seconds": "long"}, "too short": {"expiration_seconds": 599},
		"too long": {"expiration_seconds": 7201}, "no whole number": {"expiration_seconds": 600.5}, "unknown role": {"role": "god"},
	} {
		r.want(reason, r.bind(id, "b", r.binding(fields{"parameters": parameters})), http.StatusBadRequest)
	}

	r.want("nothing was created", r.get(harness.BindingPath(id, "b")), http.StatusNotFound)
}

func rowBindOfUnknownInstanceIs404(r *row) {
	id := r.newID()
	r.want("an unknown instance", r.bind(id, "b", r.binding()), http.StatusNotFound)
	r.want("an unknown instance, at once", r.bindNow(id, "b", r.binding()), http.StatusNotFound)

	lift := r.hold(callOrder)
	defer lift()

	r.want("an order", r.put(id, r.order()), http.StatusAccepted)
	r.rejected(harness.Call{Method: http.MethodPut, Path: harness.BindingPath(id, "b") + harness.Incomplete, Body: r.binding()})
}

// rowUnbindablePlanIsRejected binds an instance of a plan that is not bindable: an own cluster, for which that of another instance serves.
func rowUnbindablePlanIsRejected(r *row) {
	var planID string

	r.eachPlan(func(offering offering, plan plan) {
		if !offering.bindable(plan) {
			planID = plan.ID
		}
	})

	if planID == "" {
		return // everything that is offered can be bound
	}

	other := r.ready()
	kubeconfig := r.want("access for administrators", r.do(harness.Call{
		Method: http.MethodPost, Path: "/runtimes/" + other + "/adminkubeconfig",
	}), http.StatusOK).Text("kubeconfig")

	id := r.ready(fields{"plan_id": planID, "parameters": ownCluster(kubeconfig)})
	r.wantOneOf("a bind", r.bind(id, "b", r.binding(fields{"plan_id": planID})), http.StatusBadRequest, http.StatusUnprocessableEntity)
	r.wantOneOf("a bind at once", r.bindNow(id, "b", r.binding(fields{"plan_id": planID})), http.StatusBadRequest,
		http.StatusUnprocessableEntity)
}

// rowCredentialsExpire: the token expires with the binding and needs no revocation. Unbinding is row H2.
func rowCredentialsExpire(r *row) {
	made := r.bound(r.ready(), "b", fields{"parameters": fields{"expiration_seconds": 600}})
	expires, _ := made.Object("metadata")["expires_at"].(string)

	end, err := time.Parse(time.RFC3339Nano, expires)
	if err != nil {
		r.Fatalf("expires_at is %q", expires)
	}

	const tolerance = 5 * time.Second
	if token := r.tokenEnd(made); token.After(end.Add(tolerance)) || time.Until(end) > 600*time.Second+tolerance {
		r.Errorf("the token ends at %s, the binding at %s", token, end)
	}
}
