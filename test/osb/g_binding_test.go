package osb

import (
	"net/http"
	"regexp"
	"strings"
	"time"
)

// g12: endpoints came with 2.15. Clients of 2.14 are not given any: that of Kubernetes takes ports for numbers and fails on texts.
func g12(r *row) {
	id := r.ready()
	made := r.bound(id, "b")

	if old := r.want("a fetch by 2.14", r.do(call{
		method: http.MethodGet, path: bindingPath(id, "b"), header: header(versionHeader, "2.14"),
	}), http.StatusOK); old.Body["endpoints"] != nil {
		r.Errorf("a client that does not know endpoints is given some: %v", old.Body["endpoints"])
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

// g13 and g14: the catalog requires no permission (B17), so nothing of the kind may be answered.
func g13(r *row) {
	made := r.bound(r.ready(), "b")
	for _, field := range []string{"syslog_drain_url", "route_service_url"} {
		if value, given := made.Body[field]; given {
			r.Errorf("%s is %v", field, value)
		}
	}
}

func g14(r *row) {
	if made := r.bound(r.ready(), "b"); made.Body["volume_mounts"] != nil {
		r.Errorf("there are volume mounts: %v", made.Body["volume_mounts"])
	}
}

func g15(r *row) {
	id, stranger := r.ready(), r.ready()
	parameters := fields{"parameters": fields{"expiration_seconds": 900}}
	old := r.bound(id, "old", parameters)
	r.bound(stranger, "foreign")

	bodies := map[string]string{
		"full":  r.binding(fields{"predecessor_binding_id": "old"}),
		"short": encode(fields{"predecessor_binding_id": "old"}),
	}

	for name, body := range bodies {
		r.succeeded(bindingPath(id, name), r.want("a rotation, "+name, r.bind(id, name, body), http.StatusAccepted).text("operation"))

		rotated := r.want("a fetch", r.get(bindingPath(id, name)), http.StatusOK)
		if encode(rotated.Body["parameters"]) != encode(old.Body["parameters"]) {
			r.Errorf("the parameters are not those of the predecessor: %v", rotated.Body["parameters"])
		}

		r.reaches("the new credentials work", rotated)
		r.reaches("the old credentials still work", old)
	}

	r.unchanged([]string{bindingPath(id, "refused")}, func() {
		for reason, predecessor := range map[string]any{"unknown": "nobody", "of another instance": "foreign", "itself": "refused", "a number": 5} {
			r.refused(call{
				method: http.MethodPut, path: bindingPath(id, "refused") + incomplete,
				body: r.binding(fields{"predecessor_binding_id": predecessor}),
			})
			_ = reason
		}
	})
}

func g16(r *row) {
	made := r.bound(r.ready(), "b")
	form := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$`)
	expires, _ := made.object("metadata")["expires_at"].(string)
	renew, _ := made.object("metadata")["renew_before"].(string)

	if !form.MatchString(expires) || !form.MatchString(renew) {
		r.Fatalf("expires_at is %q, renew_before %q", expires, renew)
	}

	end, _ := time.Parse(time.RFC3339Nano, expires)
	before, _ := time.Parse(time.RFC3339Nano, renew)

	if !before.Before(end) || !before.After(time.Now()) {
		r.Errorf("there is no time to renew between %s and %s", renew, expires)
	}
}

// g17 connects with nothing but the credentials.
func g17(r *row) {
	made := r.bound(r.ready(), "b")
	delete(made.Body, "metadata")
	r.reaches("the credentials are enough", made)
}

func g18(r *row) {
	operation := r.want("a bind", r.bind(r.ready(), "b", r.binding()), http.StatusAccepted).text("operation")
	if operation == "" || len(operation) > longestOperation {
		r.Errorf("the operation is %q", operation)
	}
}

func g19(r *row) {
	id := r.ready()

	for reason, parameters := range map[string]fields{
		"unknown name": {"unknown": 1}, "wrong type": {"expiration_seconds": "long"}, "too short": {"expiration_seconds": 599},
		"too long": {"expiration_seconds": 7201}, "no whole number": {"expiration_seconds": 600.5}, "unknown role": {"role": "god"},
	} {
		r.want(reason, r.bind(id, "b", r.binding(fields{"parameters": parameters})), http.StatusBadRequest)
	}

	r.want("nothing was made", r.get(bindingPath(id, "b")), http.StatusNotFound)
}

func g20(r *row) {
	id := r.newID()
	r.want("an unknown instance", r.bind(id, "b", r.binding()), http.StatusNotFound)
	r.want("an unknown instance, at once", r.bindNow(id, "b", r.binding()), http.StatusNotFound)

	lift := r.hold(callOrder)
	defer lift()

	r.want("an order", r.put(id, r.order()), http.StatusAccepted)
	r.refused(call{method: http.MethodPut, path: bindingPath(id, "b") + incomplete, body: r.binding()})
}

// g21 binds an instance of a plan that says that it cannot be bound: a cluster of the user's own, played by that of another instance.
func g21(r *row) {
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
	kubeconfig := r.want("access for administrators", r.do(call{
		method: http.MethodPost, path: "/runtimes/" + other + "/adminkubeconfig",
	}), http.StatusOK).text("kubeconfig")

	id := r.ready(fields{"plan_id": planID, "parameters": ownCluster(kubeconfig)})
	r.wantOneOf("a bind", r.bind(id, "b", r.binding(fields{"plan_id": planID})), http.StatusBadRequest, http.StatusUnprocessableEntity)
	r.wantOneOf("a bind at once", r.bindNow(id, "b", r.binding(fields{"plan_id": planID})), http.StatusBadRequest,
		http.StatusUnprocessableEntity)
}

// g22: the token itself ends when the binding does, so nobody has to remember to revoke it. Unbinding is row H2.
func g22(r *row) {
	made := r.bound(r.ready(), "b", fields{"parameters": fields{"expiration_seconds": 600}})
	expires, _ := made.object("metadata")["expires_at"].(string)

	end, err := time.Parse(time.RFC3339Nano, expires)
	if err != nil {
		r.Fatalf("expires_at is %q", expires)
	}

	const tolerance = 5 * time.Second
	if token := r.tokenEnd(made); token.After(end.Add(tolerance)) || time.Until(end) > 600*time.Second+tolerance {
		r.Errorf("the token ends at %s, the binding at %s", token, end)
	}
}
