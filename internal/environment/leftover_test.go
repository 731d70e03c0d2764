package environment_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

const leftoverID = "0f5b2c7e-1111-4222-8333-444455556666"

func TestLeftoverKey(t *testing.T) {
	for _, id := range []string{"one", "a/b", "a" + environment.LeftoverPath + leftoverID, "100%", ""} {
		instanceID, found, ok := environment.LeftoverOf(environment.LeftoverKey(id, leftoverID))
		if instanceID != id || found != leftoverID || !ok {
			t.Errorf("the key of %q is split into %q, %q, %t", id, instanceID, found, ok)
		}
	}

	for _, key := range []string{"one", "one" + environment.LeftoverPath, environment.BindingKey("one", "a"+environment.LeftoverPath+leftoverID)} {
		if _, _, ok := environment.LeftoverOf(key); ok {
			t.Errorf("%q was mistaken for the key of a leftover", key)
		}
	}
}

// TestCleanup checks that a cleanup starts with the data of the deletion, except for earlier waits, and that the leftover
// contains no secrets.
func TestCleanup(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	instance := environment.Instance{ID: "one", GlobalAccountID: "ga", Request: environment.Request{User: "somebody"}}

	leftover := environment.NewLeftover(process.Record{ID: leftoverID, Kind: environment.KindDeprovision}, instance, []string{"B", "A", "B"}, at)
	if diff := cmp.Diff([]string{"A", "B"}, leftover.Steps); diff != "" || leftover.Instance.Request.User != "" {
		t.Errorf("steps, -want +got:\n%s\nrequest %+v", diff, leftover.Instance.Request)
	}

	payload, err := environment.Data{Instance: instance, ProvisionerOperationID: "removal", UnknownSince: at, Ordered: true}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}

	cleanup, err := environment.NewCleanup(leftover, payload, []string{"Init_Step"}, at)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := environment.NewCleanup(leftover, []byte(`{"version": 99}`), nil, at); err == nil {
		t.Error("the data of a later release are accepted")
	}

	var data environment.Data
	if err := data.UnmarshalJSON(cleanup.Payload); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(environment.Data{Instance: instance, Ordered: true}, data); diff != "" {
		t.Errorf("data, -want +got:\n%s", diff)
	}

	if cleanup.InstanceID != leftover.Key() || cleanup.Tenant != "ga" || cleanup.PredecessorID != leftoverID || cleanup.Kind != environment.KindCleanup {
		t.Errorf("got %+v", cleanup)
	}
}
