package broker_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// smCredentials returns credentials as platforms send them, with changed fields. A nil value removes a field.
func smCredentials(changes map[string]any) map[string]any {
	credentials := map[string]any{
		"clientid": "client-1", "clientsecret": "secret-1", "sm_url": "https://sm.example.com", "url": "https://tokens.example.com", "xsappname": "ignored",
	}
	maps.Copy(credentials, changes)
	maps.DeleteFunc(credentials, func(_ string, value any) bool { return value == nil })

	return credentials
}

// inContext returns a context with credentials.
func inContext(credentials any) map[string]any {
	return with("context", map[string]any{"sm_operator_credentials": credentials})
}

// TestServiceManagerIsRejected checks that incomplete credentials are refused and not quoted.
func TestServiceManagerIsRejected(t *testing.T) {
	const field = "context.sm_operator_credentials"

	cases := map[string]struct {
		credentials any
		want        string
	}{
		"Text":      {"x", field + " must be an object."},
		"Empty":     {map[string]any{}, field + ".clientid is missing."},
		"NoSecret":  {smCredentials(map[string]any{"clientsecret": nil}), field + ".clientsecret is missing."},
		"Number":    {smCredentials(map[string]any{"clientsecret": 5}), field + ".clientsecret must be a string."},
		"NoAddress": {smCredentials(map[string]any{"sm_url": ""}), field + ".sm_url is missing."},
		"Plain":     {smCredentials(map[string]any{"sm_url": "http://sm.example.com"}), field + ".sm_url must be an https URL"},
		"User":      {smCredentials(map[string]any{"url": "https://user:secret-1@tokens.example.com"}), field + ".url must be an https URL"},
	}

	b := newFixture(t)
	b.provisioned(instanceID)

	for name, test := range cases {
		for request, got := range map[string]reply{
			"PUT":   b.put(name, order(inContext(test.credentials))),
			"PATCH": b.do(call{method: "PATCH", path: path(instanceID), body: patching(inContext(test.credentials))}),
		} {
			b.want(request+" "+name, got, 400)

			if text := got.text("description"); !strings.Contains(text, test.want) || strings.Contains(text, "secret-1") {
				b.Errorf("%s %s: want a description with %q, got %q", request, name, test.want, text)
			}
		}
	}
}

// TestServiceManager checks that the credentials of an order are stored and never returned, and that only changed credentials start an
// operation.
func TestServiceManager(t *testing.T) {
	b := newFixture(t)
	b.succeed(b.want("an order with credentials", b.put(instanceID, order(inContext(smCredentials(nil)))), 202).text("operation"))

	stored := func(reason, secret string) {
		t.Helper()

		want := &environment.ServiceManager{
			ClientID: "client-1", ClientSecret: "secret-1", URL: "https://sm.example.com", TokenURL: "https://tokens.example.com",
		}
		if secret != "secret-1" {
			want.ClientSecret = "secret-2"
		}

		if diff := cmp.Diff(want, b.stored(instanceID).Request.Cluster.ServiceManager); diff != "" {
			t.Errorf("%s: -want +got\n%s", reason, diff)
		}
	}

	stored("the order", "secret-1")

	if got := b.get(instanceID); strings.Contains(got.Raw, "secret-1") || strings.Contains(got.Raw, "client-1") {
		t.Errorf("the instance shows its credentials: %s", got.Raw)
	}

	patch := func(context map[string]any, want int) (operation string) {
		t.Helper()

		return b.want("an update of the context", b.patch(instanceID, with("context", context)), want).text("operation")
	}

	patch(map[string]any{"organization_name": "renamed"}, 200)
	patch(map[string]any{"sm_operator_credentials": nil}, 200)
	patch(map[string]any{"sm_operator_credentials": smCredentials(nil)}, 200)
	stored("credentials that do not change", "secret-1")

	rotated := map[string]any{"sm_operator_credentials": smCredentials(map[string]any{"clientsecret": "secret-2"})}
	operation := patch(rotated, 202)

	if repeated := patch(rotated, 202); repeated != operation {
		t.Errorf("a repeated rotation started operation %q, want %q", repeated, operation)
	}

	patch(map[string]any{"sm_operator_credentials": smCredentials(map[string]any{"clientsecret": "secret-3"})}, 422)
	stored("the row changes with the end of the operation", "secret-1")
	b.succeed(operation)
	stored("the end of the rotation", "secret-2")
}
