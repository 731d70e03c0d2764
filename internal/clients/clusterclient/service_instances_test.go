package clusterclient_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
)

// services is a fake API server with the custom resources of the BTP service operator. An object with a finalizer stays until its finalizer
// is removed.
type services struct {
	mutex sync.Mutex
	// objects are the objects by resource. Without an entry, the resource is not installed.
	objects map[string][]metav1.PartialObjectMetadata
}

func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	const prefix = "/shoot/apis/services.cloud.sap.com/v1/"

	parts := strings.Split(strings.TrimPrefix(r.URL.Path, prefix), "/")
	resource := parts[0]

	if len(parts) == 4 { // namespaces/NAMESPACE/RESOURCE/NAME
		resource = parts[2]
	}

	answer, status := any(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"}), http.StatusOK

	switch held, installed := s.objects[resource]; {
	case !installed:
		status = http.StatusNotFound
	case r.Method == http.MethodGet:
		answer = metav1.PartialObjectMetadataList{Items: held}
	default:
		index := slices.IndexFunc(held, func(o metav1.PartialObjectMetadata) bool { return o.Namespace == parts[1] && o.Name == parts[3] })
		if r.Method == http.MethodPatch {
			held[index].Finalizers = nil
		} else {
			held[index].DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}

		s.objects[resource] = slices.DeleteFunc(held, func(o metav1.PartialObjectMetadata) bool {
			return o.DeletionTimestamp != nil && len(o.Finalizers) == 0
		})
	}

	if status != http.StatusOK {
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(status), Message: sensitive, Reason: metav1.StatusReasonNotFound}
	}

	encoded, err := json.Marshal(answer)
	if err != nil {
		status = http.StatusTeapot
	}

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encoded)
}

// object returns an object in a namespace of its own.
func object(name string, finalizers ...string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "of-" + name, Finalizers: finalizers}}
}

// manyObjects returns more objects than a client with the default rate limit of client-go can remove in a session.
func manyObjects(finalizer string) []metav1.PartialObjectMetadata {
	const many = 60

	objects := make([]metav1.PartialObjectMetadata, many)
	for i := range objects {
		objects[i] = object("i"+strconv.Itoa(i), finalizer)
	}

	return objects
}

// TestRemoveServiceInstances calls RemoveServiceInstances until nothing is left or a call makes no progress, and checks what each
// call leaves.
func TestRemoveServiceInstances(t *testing.T) {
	const bindings, instances, operator = "servicebindings", "serviceinstances", "services.cloud.sap.com/finalizer"

	type objects = map[string][]metav1.PartialObjectMetadata

	cases := map[string]struct {
		reason  string
		objects objects
		abandon bool
		left    []int // after each call
	}{
		"not installed": {"a runtime without the operator", nil, false, []int{0}},
		"empty":         {"no objects", objects{bindings: {}, instances: {}}, false, []int{0}},
		"free":          {"objects without finalizers", objects{bindings: {object("b")}, instances: {object("i")}}, false, []int{0}},
		"waiting":       {"instances wait for their bindings", objects{bindings: {object("b", operator)}, instances: {object("i", operator)}}, false, []int{1, 1}},
		"instances":     {"the operator removes them", objects{bindings: {}, instances: {object("i", operator), object("j")}}, false, []int{1, 1}},
		"abandoned": {
			"nothing waits for the operator", objects{bindings: {object("b", operator)}, instances: {object("i", operator), object("j", operator)}}, true, []int{0},
		},
		"many": {"the client sends as many requests as it needs", objects{bindings: {}, instances: manyObjects(operator)}, true, []int{0}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(&services{objects: c.objects})
			t.Cleanup(server.Close)

			access := clusterclient.New(kubeconfigs{text: written(t, kubeconfig(server))})

			var left []int

			for range c.left {
				found, err := access.RemoveServiceInstances(t.Context(), instance(), c.abandon)
				if err != nil {
					t.Fatal(err)
				}

				left = append(left, found)
			}

			if diff := cmp.Diff(c.left, left); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}

			if waiting := c.objects[instances]; name == "waiting" && waiting[0].DeletionTimestamp != nil {
				t.Error("an instance was deleted before its bindings were gone")
			}
		})
	}
}

// TestServiceInstanceFaults checks the error of RemoveServiceInstances for each fault of the runtime.
//
//faults:table btp.md#errors
func TestServiceInstanceFaults(t *testing.T) {
	const (
		cannot  = "cannot remove the service instances yet: the API server of the runtime does not respond correctly"
		rejects = "the runtime rejects the request to remove the service instances"
	)

	cases := map[string]struct {
		fault runtimeFault
		away  bool
		text  string
		kind  failure.Kind
	}{
		"is unreachable, slow, returns no JSON, or answers an error to BTPOperator_Cleanup/unreachable": {away: true, text: cannot, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers an error to BTPOperator_Cleanup/slow":        {fault: runtimeFault{status: slow}, text: cannot, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers an error to BTPOperator_Cleanup/no JSON":     {fault: runtimeFault{}, text: cannot, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers an error to BTPOperator_Cleanup/401":         {fault: runtimeFault{status: 401}, text: cannot, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers an error to BTPOperator_Cleanup/403":         {fault: runtimeFault{status: 403}, text: rejects, kind: failure.Permanent},
		"is unreachable, slow, returns no JSON, or answers an error to BTPOperator_Cleanup/409":         {fault: runtimeFault{status: 409}, text: cannot, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers an error to BTPOperator_Cleanup/429":         {fault: runtimeFault{status: 429}, text: cannot, kind: failure.Transient},
		"is unreachable, slow, returns no JSON, or answers an error to BTPOperator_Cleanup/500":         {fault: runtimeFault{status: 500}, text: cannot, kind: failure.Transient},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c.fault.method, c.fault.times = http.MethodGet, always

			_, kubeconfig := newBrokenRuntime(t, c.fault)
			if c.away {
				kubeconfig = away(t)
			}

			ctx := t.Context()

			if c.fault.status == slow { // instead of the end of the session
				limited, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()

				ctx = limited
			}

			_, err := clusterclient.New(kubeconfigs{text: kubeconfig}).RemoveServiceInstances(ctx, instance(), true)
			if failure.Of(err).Text != c.text || failure.KindOf(err) != c.kind {
				t.Errorf("got %v of kind %s, want %q", err, failure.KindOf(err), c.text)
			}

			faulttable.Shows(t, "btp.md#errors", name, failure.Of(err).Text)
		})
	}
}

// FuzzServiceInstances sends lists from a tenant's runtime to the removal. The call must return, whatever they contain.
func FuzzServiceInstances(f *testing.F) {
	f.Add([]byte(`{"items":[{"metadata":{"name":"a","namespace":"b","finalizers":["c"]}}]}`))
	f.Add([]byte(`{"items":null}`))
	f.Add([]byte(`[]`))

	f.Fuzz(func(t *testing.T, list []byte) {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(list)
		}))
		defer server.Close()

		left, err := clusterclient.New(kubeconfigs{text: written(t, kubeconfig(server))}).RemoveServiceInstances(t.Context(), instance(), true)
		if left < 0 || err != nil && failure.Of(err).Text == "" {
			t.Errorf("%d left, %v", left, err)
		}
	})
}
