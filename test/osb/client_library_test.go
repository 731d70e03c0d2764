package osb

import (
	"net/http"
	"testing"

	client "sigs.k8s.io/go-open-service-broker-client/v2"

	"github.com/environment-broker/environment-broker/test/harness"
)

// clientLibraryTests returns the tests that call the broker through the Kubernetes client library for service brokers
// (pmorie/go-open-service-broker-client).
func clientLibraryTests() map[string]func(*row) {
	return map[string]func(*row){
		"instance": libraryInstance, "update": libraryUpdate, "binding": libraryBinding,
		"errors": libraryErrors,
	}
}

// TestClientLibrary creates, updates and deletes instances and bindings with the Kubernetes client library.
func TestClientLibrary(t *testing.T) {
	e := start(t)

	for name, test := range clientLibraryTests() {
		t.Run(name, func(t *testing.T) { test(newRow(t, e)) })
	}
}

// library returns a client from the library that uses the library's default API version.
func (r *row) library() client.Client {
	r.Helper()

	configuration := client.DefaultClientConfiguration()
	configuration.URL = r.Broker.URL
	configuration.AuthConfig = &client.AuthConfig{BasicAuthConfig: &client.BasicAuthConfig{Username: harness.User, Password: harness.Password}}

	library, err := client.NewClient(configuration)
	if err != nil {
		r.t.Fatal(err)
	}

	return library
}

func (r *row) libraryOrder(id string) *client.ProvisionRequest {
	return &client.ProvisionRequest{
		InstanceID: id, AcceptsIncomplete: true, ServiceID: harness.ServiceID, PlanID: harness.PlanAWS, OrganizationGUID: r.tenant, SpaceGUID: "space",
		Parameters: map[string]any{"region": "eu-west-1"},
		Context:    map[string]any{"platform": "kubernetes", "namespace": "n", "clusterid": r.tenant, "instance_name": "mine"},
		OriginatingIdentity: &client.OriginatingIdentity{
			Platform: client.PlatformKubernetes, Value: `{"username":"somebody","uid":"u","groups":["g"]}`,
		},
	}
}

// pollUntilDone calls poll until the operation has succeeded or the polled resource is gone.
func (r *row) pollUntilDone(poll func() (*client.LastOperationResponse, error)) {
	r.Helper()

	r.until("the end of the operation", func() bool {
		last, err := poll()

		switch {
		case client.IsGoneError(err):
			return true
		case err != nil:
			r.Fatalf("polling with the library: %v", err)
		case last.State == client.StateFailed:
			r.Fatalf("the operation failed: %+v", last)
		}

		return last.State == client.StateSucceeded
	})
}

func (r *row) waitForInstance(library client.Client, id string, key *client.OperationKey) {
	r.Helper()

	service, plan := harness.ServiceID, harness.PlanAWS

	r.pollUntilDone(func() (*client.LastOperationResponse, error) {
		return library.PollLastOperation(&client.LastOperationRequest{InstanceID: id, ServiceID: &service, PlanID: &plan, OperationKey: key})
	})
}

// createWithLibrary creates an instance with the library, waits until it is ready, and returns its ID.
func (r *row) createWithLibrary(library client.Client) (id string) {
	r.Helper()

	id = r.newID()

	ordered, err := library.ProvisionInstance(r.libraryOrder(id))
	if err != nil || !ordered.Async || ordered.OperationKey == nil {
		r.Fatalf("ordering with the library: %+v, %v", ordered, err)
	}

	r.waitForInstance(library, id, ordered.OperationKey)

	return id
}

func libraryInstance(r *row) {
	library := r.library()

	catalog, err := library.GetCatalog()
	if err != nil || len(catalog.Services) != 1 || len(catalog.Services[0].Plans) == 0 || catalog.Services[0].ID != harness.ServiceID {
		r.Fatalf("fetching the catalog with the library: %+v, %v", catalog, err)
	}

	id := r.createWithLibrary(library)

	if again, err := library.ProvisionInstance(r.libraryOrder(id)); err != nil || again.Async {
		r.Errorf("repeating the order of a ready instance: %+v, %v", again, err)
	}

	found, err := library.GetInstance(&client.GetInstanceRequest{InstanceID: id})
	if err != nil || found.PlanID != harness.PlanAWS || found.Parameters["region"] != "eu-west-1" {
		r.Errorf("the library fetched %+v, %v", found, err)
	}

	removal := &client.DeprovisionRequest{InstanceID: id, AcceptsIncomplete: true, ServiceID: harness.ServiceID, PlanID: harness.PlanAWS}

	removed, err := library.DeprovisionInstance(removal)
	if err != nil || !removed.Async {
		r.Fatalf("deleting with the library: %+v, %v", removed, err)
	}

	r.waitForInstance(library, id, removed.OperationKey)

	if again, err := library.DeprovisionInstance(removal); err != nil && !client.IsGoneError(err) {
		r.Errorf("repeating a finished deletion: %+v, %v", again, err)
	}
}

func libraryUpdate(r *row) {
	library := r.library()
	id := r.createWithLibrary(library)

	updated, err := library.UpdateInstance(&client.UpdateInstanceRequest{
		InstanceID: id, AcceptsIncomplete: true, ServiceID: harness.ServiceID, Parameters: map[string]any{"autoScalerMax": 12},
		PreviousValues: &client.PreviousValues{PlanID: harness.PlanAWS, ServiceID: harness.ServiceID},
		Context:        map[string]any{"platform": "kubernetes", "namespace": "n", "clusterid": r.tenant, "instance_name": "renamed"},
	})
	if err != nil || !updated.Async {
		r.Fatalf("updating with the library: %+v, %v", updated, err)
	}

	r.waitForInstance(library, id, updated.OperationKey)

	found, err := library.GetInstance(&client.GetInstanceRequest{InstanceID: id})
	if err != nil || found.Parameters["autoScalerMax"] != 12.0 {
		r.Errorf("the library fetched %+v, %v", found, err)
	}
}

func libraryBinding(r *row) {
	library := r.library()
	id := r.createWithLibrary(library)

	for _, async := range []bool{false, true} {
		binding := r.newID()

		bound, err := library.Bind(&client.BindRequest{
			BindingID: binding, InstanceID: id, AcceptsIncomplete: async, ServiceID: harness.ServiceID, PlanID: harness.PlanAWS,
			Parameters: map[string]any{"expiration_seconds": 900}, Context: map[string]any{"platform": "kubernetes"},
		})
		if err != nil || bound.Async != async {
			r.Fatalf("binding with the library: %+v, %v", bound, err)
		}

		r.waitForBinding(library, id, binding, bound.Async, bound.OperationKey)

		found, err := library.GetBinding(&client.GetBindingRequest{InstanceID: id, BindingID: binding})
		if err != nil || found.Credentials["kubeconfig"] == nil {
			r.Fatalf("fetching a binding with the library: %v", err)
		}

		r.wantAccess("the credentials fetched with the library", harness.Reply{Body: map[string]any{"credentials": found.Credentials}})

		unbound, err := library.Unbind(&client.UnbindRequest{
			InstanceID: id, BindingID: binding, AcceptsIncomplete: async, ServiceID: harness.ServiceID, PlanID: harness.PlanAWS,
		})
		if err != nil || unbound.Async != async {
			r.Fatalf("unbinding with the library: %+v, %v", unbound, err)
		}

		r.waitForBinding(library, id, binding, unbound.Async, unbound.OperationKey)
	}
}

func (r *row) waitForBinding(library client.Client, id, binding string, async bool, key *client.OperationKey) {
	r.Helper()

	if !async {
		return
	}

	r.pollUntilDone(func() (*client.LastOperationResponse, error) {
		return library.PollBindingLastOperation(&client.BindingLastOperationRequest{InstanceID: id, BindingID: binding, OperationKey: key})
	})
}

// libraryErrors checks that the library recognizes the broker's errors. The library compares the status, and for some errors also
// the code and the exact description.
func libraryErrors(r *row) {
	library := r.library()

	synchronous := r.libraryOrder(r.newID())
	synchronous.AcceptsIncomplete = false

	if _, err := library.ProvisionInstance(synchronous); !client.IsAsyncRequiredError(err) {
		r.Errorf("a synchronous order: %v", err)
	}

	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	if _, err := library.ProvisionInstance(r.libraryOrder(id)); err != nil {
		r.Fatalf("an order: %v", err)
	}

	other := r.libraryOrder(id)
	other.Parameters["region"] = "eu-central-1"

	if _, err := library.ProvisionInstance(other); !client.IsConflictError(err) {
		r.Errorf("a different order with the same ID: %v", err)
	}

	_, err := library.PollLastOperation(&client.LastOperationRequest{InstanceID: r.newID()})
	if known, isHTTP := client.IsHTTPError(err); !isHTTP || known.StatusCode != http.StatusNotFound || known.Description == nil {
		r.Errorf("a poll of an unknown instance: %v", err)
	}

	removal := &client.DeprovisionRequest{InstanceID: id, AcceptsIncomplete: true, ServiceID: harness.ServiceID, PlanID: harness.PlanAWS}
	if _, err := library.DeprovisionInstance(removal); err != nil {
		r.Fatalf("a deletion: %v", err)
	}

	// The broker rejects an order for an instance that is being deleted.
	if _, err := library.ProvisionInstance(r.libraryOrder(id)); !client.IsConcurrencyError(err) {
		r.Errorf("an order during the deletion: %v", err)
	}

	lift()
	r.wantGone(harness.InstancePath(id), "")

	// After the deletion, the library must report success or that the instance is gone.
	if _, err := library.DeprovisionInstance(removal); err != nil && !client.IsGoneError(err) {
		r.Errorf("the deletion of a deleted instance: %v", err)
	}
}
