package fakecontrolplane

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// resources returns the served kinds, keyed by the collection path without a namespace.
func resources() map[string]string {
	return map[string]string{
		"/api/v1/configmaps": "ConfigMap", "/api/v1/secrets": "Secret", "/apis/operator.kyma-project.io/v1beta2/kymas": "Kyma",
	}
}

// ControlPlane is the simulated control plane. It is safe for concurrent use.
type ControlPlane struct {
	*simulator.Base

	// objects is keyed by kind and then by NAMESPACE/NAME. held, if not empty, is the state in which all Kyma resources are kept.
	// stuck prevents deleted Kyma resources from disappearing. The lock in Base guards all of these fields.
	objects map[string]map[string]*unstructured.Unstructured
	held    string
	message string
	stuck   bool
	created int
}

// New returns a control plane without objects.
func New() *ControlPlane {
	c := &ControlPlane{Base: simulator.NewBase("control-plane"), objects: map[string]map[string]*unstructured.Unstructured{}}
	c.Mux.Handle("GET /version", c.Handle("getVersion", func(w http.ResponseWriter, _ *http.Request) {
		simulator.WriteJSON(w, http.StatusOK, map[string]string{"gitVersion": "v1.35.4"})
	}))

	for path, kind := range resources() {
		c.objects[kind] = map[string]*unstructured.Unstructured{}
		at := strings.LastIndex(path, "/")
		collection := path[:at] + "/namespaces/{namespace}" + path[at:]
		object := collection + "/{name}"

		c.Mux.Handle("GET "+collection, c.Handle("list"+kind, c.list(kind)))
		c.Mux.Handle("GET "+object, c.Handle("get"+kind, c.get(kind)))
		c.Mux.Handle("PATCH "+object, c.Handle("patch"+kind, c.patch(kind)))
		c.Mux.Handle("DELETE "+object, c.Handle("delete"+kind, c.remove(kind)))
	}

	return c
}

// Kubeconfig returns a kubeconfig for the control plane at the given address. The kubeconfig has no credentials, because
// client-go sends none without TLS. The control plane therefore does not authenticate its clients.
func Kubeconfig(address string) []byte {
	return fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: control-plane, clusters: [{name: control-plane, cluster: {server: %q}}],
users: [{name: broker, user: {}}], contexts: [{name: control-plane, context: {cluster: control-plane, user: broker}}]}
`, address)
}

// Hold keeps all Kyma resources in the given state, with a message. If state is empty, the simulation of Lifecycle Manager
// resumes. If stuck is set, deleted Kyma resources do not disappear until their Secret is gone.
func (c *ControlPlane) Hold(state, message string, stuck bool) {
	c.Locked(func() { c.held, c.message, c.stuck = state, message, stuck })
}

// Put adds or replaces an object of the given kind, such as ConfigMap. object has the form of a decoded JSON manifest.
func (c *ControlPlane) Put(kind string, object map[string]any) {
	c.Locked(func() {
		stored := &unstructured.Unstructured{Object: object}
		c.objects[kind][stored.GetNamespace()+"/"+stored.GetName()] = stored
	})
}

// Remove removes an object immediately, even a Kyma resource.
func (c *ControlPlane) Remove(kind, namespace, name string) {
	c.Locked(func() { delete(c.objects[kind], namespace+"/"+name) })
}

// Objects returns copies of the objects of a kind, sorted by name.
func (c *ControlPlane) Objects(kind string) []unstructured.Unstructured {
	var found []unstructured.Unstructured

	c.Locked(func() {
		for _, name := range slices.Sorted(maps.Keys(c.objects[kind])) {
			found = append(found, *c.objects[kind][name].DeepCopy())
		}
	})

	return found
}

// Holds implements simulator.System.
func (c *ControlPlane) Holds() []string {
	var lines []string

	for _, kyma := range c.Objects("Kyma") {
		channel, _, _ := unstructured.NestedString(kyma.Object, "spec", "channel")
		state, _, _ := unstructured.NestedString(kyma.Object, "status", "state")
		lines = append(lines, fmt.Sprintf("Kyma %s/%s: channel %s, modules %s, state %s", kyma.GetNamespace(), kyma.GetName(),
			cmp.Or(channel, "unset"), cmp.Or(strings.Join(Modules(kyma), ", "), "none"), cmp.Or(state, "unset")))
	}

	for _, kind := range []string{"Secret", "ConfigMap"} {
		for _, object := range c.Objects(kind) {
			lines = append(lines, kind+" "+object.GetNamespace()+"/"+object.GetName())
		}
	}

	return lines
}

// Modules returns the names of the modules in a Kyma resource.
func Modules(kyma unstructured.Unstructured) []string {
	var names []string

	modules, _, _ := unstructured.NestedSlice(kyma.Object, "spec", "modules")
	for _, module := range modules {
		if entry, isMap := module.(map[string]any); isMap {
			names = append(names, fmt.Sprint(entry["name"]))
		}
	}

	return names
}

// refuse writes an error as a Status object.
func refuse(w http.ResponseWriter, status int, message string) {
	simulator.WriteJSON(w, status, map[string]any{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": status, "message": message,
	})
}

func key(r *http.Request) string { return r.PathValue("namespace") + "/" + r.PathValue("name") }

// decode returns the body of a patch, or false if it is not a JSON object.
func decode(r *http.Request) (map[string]any, bool) {
	var body map[string]any

	err := json.NewDecoder(r.Body).Decode(&body)

	return body, err == nil
}

// Transport returns a transport that sends all requests to the control plane at the given address. The transport of the broker
// does the same.
func Transport(address *url.URL) http.RoundTripper { return transport{address} }

type transport struct{ address *url.URL }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := request.Clone(request.Context())
	sent.URL.Scheme, sent.URL.Host = t.address.Scheme, t.address.Host

	return http.DefaultTransport.RoundTrip(sent) //nolint:wrapcheck // this is a transport, too
}
