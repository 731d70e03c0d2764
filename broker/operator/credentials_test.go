package operator_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// credential records the object of an instance in a system.
func (b *bench) credential(by process.Record, instanceID, system, kind string, valid environment.Credential) environment.OutsideObject {
	b.Helper()

	object := environment.OutsideObject{
		InstanceID: instanceID, System: system, Kind: kind, Key: system + " of " + instanceID, State: environment.OutsideCreated, Credential: valid,
	}
	if err := b.objects.Set(b.Context(), by, object, b.clock.Now()); err != nil {
		b.Fatal(err)
	}

	return object
}

func TestCredentials(t *testing.T) {
	connected := func(options *operator.Options) { options.Renewed = []string{environment.SystemReconciler} }

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := benchOn(t, db, connected)
		b.instance("a/b", process.Succeeded)
		b.instance("busy", process.InProgress)
		b.instance("bare", process.Succeeded)

		by := storagetest.Hold(t, db, b.operations, environment.KindUpdate, "other")
		issued := environment.NewCredential(b.clock.Now(), b.clock.Now().Add(8*time.Hour))

		b.credential(by, "a/b", environment.SystemLifecycleManager, environment.KindKubeconfig, environment.Credential{})
		b.credential(by, "a/b", environment.SystemLifecycleManager, environment.KindKymaResource, environment.Credential{})
		cluster := b.credential(by, "a/b", environment.SystemReconciler, environment.KindCluster, issued)
		b.credential(by, "busy", environment.SystemReconciler, environment.KindCluster, issued)

		want := []operatorapi.Credential{
			{InstanceID: "a/b", System: "lifecycle-manager", Name: "lifecycle-manager of a/b"},
			{
				InstanceID: "a/b", System: "reconciler", Name: "reconciler of a/b", IssuedAt: b.clock.Now(), ValidUntil: b.clock.Now().Add(8 * time.Hour),
				RenewAt: b.clock.Now().Add(4 * time.Hour),
			},
			{
				InstanceID: "busy", System: "reconciler", Name: "reconciler of busy", IssuedAt: b.clock.Now(), ValidUntil: b.clock.Now().Add(8 * time.Hour),
				RenewAt: b.clock.Now().Add(4 * time.Hour),
			},
		}

		var got []operatorapi.Credential

		for cursor := ""; ; {
			page := list[operatorapi.CredentialList](b, "/credentials?page_size=1&cursor="+cursor)
			got = append(got, page.Data...)

			if cursor = page.Cursor; cursor == "" {
				break
			}
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pages: -want +got\n%s", diff)
		}

		if diff := cmp.Diff(want[2:], list[operatorapi.CredentialList](b, "/credentials?instance_id=busy").Data); diff != "" {
			t.Errorf("of an instance: -want +got\n%s", diff)
		}

		b.wantRenewals(cluster, want)
	})
}

// wantRenewals checks dry runs and a renewal of the instance of the object, which is not due before.
func (b *bench) wantRenewals(cluster environment.OutsideObject, all []operatorapi.Credential) {
	b.Helper()

	renew := func(instance, body string, status int) reply {
		b.Helper()

		return b.want(instance+" "+body, b.send("operator", "POST", "/runtimes/"+instance+"/renewCredentials", strings.NewReader(body)), status)
	}

	due := func() int {
		b.Helper()

		found, err := b.objects.DueCredentials(b.Context(), []string{environment.SystemReconciler}, b.clock.Now(), 10)
		if err != nil {
			b.Fatal(err)
		}

		return len(found)
	}

	unconnected := all[0]
	unconnected.Obstacle = "The broker is not connected to Lifecycle Manager: set APP_LIFECYCLE_MANAGER_ENABLED."
	want := operatorapi.CredentialRenewals{DryRun: true, Data: []operatorapi.Credential{unconnected, all[1]}}

	if diff := cmp.Diff(want, read[operatorapi.CredentialRenewals](b, renew("a%2Fb", `{"dryRun": true}`, http.StatusAccepted))); diff != "" {
		b.Errorf("a dry run: -want +got\n%s", diff)
	}

	waiting := read[operatorapi.CredentialRenewals](b, renew("busy", `{"dryRun": true}`, http.StatusAccepted))
	if obstacle := waiting.Data[0].Obstacle; !strings.HasPrefix(obstacle, "The renewal waits for operation ") {
		b.Errorf("an instance with an operation: %q", obstacle)
	}

	renew("a%2Fb", `{}`, http.StatusBadRequest)
	renew("a%2Fb", `{"reason": "x", "force": true}`, http.StatusBadRequest)
	renew("none", `{"dryRun": true}`, http.StatusNotFound)
	renew("bare", `{"reason": "x"}`, http.StatusConflict)

	if count := due(); count != 0 || len(b.audit("?action=renew")) != 0 {
		b.Errorf("%d renewals are due before one is requested", count)
	}

	want.DryRun = false
	if diff := cmp.Diff(want, read[operatorapi.CredentialRenewals](b, renew("a%2Fb", `{"reason": "lost"}`, http.StatusAccepted))); diff != "" {
		b.Errorf("a renewal: -want +got\n%s", diff)
	}

	entries := b.audit("?action=renew")
	if count := due(); count != 1 || len(entries) != 1 || entries[0].InstanceID != "a/b" || entries[0].Reason != "lost" {
		b.Errorf("%d renewals are due, the audit log has %+v", count, entries)
	}

	cluster.Credential.RenewAt = b.clock.Now()
	if began, err := b.objects.BeginRenewal(b.Context(), outsideobjects.Renewal{
		Object: cluster, Now: b.clock.Now(), RetryAt: b.clock.Now().Add(time.Minute), Until: b.clock.Now().Add(time.Minute),
	}); err != nil || !began {
		b.Fatalf("the renewal begins: %t, %v", began, err)
	}

	during := read[operatorapi.CredentialRenewals](b, renew("a%2Fb", `{"reason": "again"}`, http.StatusAccepted))
	if count := due(); count != 0 || during.Data[1].Obstacle != "A renewal is in progress." {
		b.Errorf("during a renewal, %d are due, and the response is %+v", count, during)
	}
}
