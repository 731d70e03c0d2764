package orders_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// auditOf returns the runtime's audit entries from oldest to newest, without the fields that differ in each run.
func (f *fixture) auditOf(runtimeID string) []auditlog.Entry {
	f.Helper()

	found, err := f.entries.List(f.Context(), auditlog.Filter{InstanceID: runtimeID, Limit: 100})
	if err != nil {
		f.Fatal(err)
	}

	entries := make([]auditlog.Entry, 0, len(found))
	for _, entry := range slices.Backward(found) {
		entries = append(entries, auditlog.Entry{
			Action: entry.Action, Status: entry.Status, By: auditlog.Actor{User: entry.By.User}, Before: entry.Before, After: entry.After,
		})
	}

	return entries
}

func TestAuditLogNamesTheCaller(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		ctx := auth.NewContext(f.Context(), auth.Identity{Name: "broker", Means: auth.ByPassword})

		status, err := f.service.Provision(ctx, caller("acme", "key"), order("c-one"))
		if err != nil {
			f.Fatal(err)
		}

		f.finish(status.ID, process.Succeeded)

		if status, err = f.service.UpgradeShoot(ctx, caller("acme", ""), status.RuntimeID, moreMachines()); err != nil {
			f.Fatal(err)
		}

		if _, err := f.service.RuntimeStatus(ctx, caller("acme", ""), status.RuntimeID, orders.RuntimeFields{Kubeconfig: true}); err != nil {
			f.Fatal(err)
		}

		if _, err := f.service.Deprovision(ctx, caller("acme", ""), status.RuntimeID); err != nil {
			f.Fatal(err)
		}

		hash := sha256.Sum256([]byte(status.RuntimeID + "\x00joe@example.com"))
		fingerprint := hex.EncodeToString(hash[:])[:16]
		by := auditlog.Actor{User: "broker"}
		whole := auditlog.Fields{
			"cluster": "c-one", "tenant": "acme", "subAccount": "sub", "provider": "aws", "region": "", "kubernetesVersion": "",
			"machineType": "", "autoScalerMin": 0.0, "autoScalerMax": 0.0, "administrators": nil,
		}
		want := []auditlog.Entry{
			{Action: operation.KindProvisionNoInstall, Status: http.StatusAccepted, By: by, After: whole},
			{
				Action: operation.KindUpgradeShoot, Status: http.StatusAccepted, By: by,
				Before: auditlog.Fields{"machineType": "", "autoScalerMin": 0.0, "autoScalerMax": 0.0, "administrators": nil},
				After: auditlog.Fields{
					"machineType": "m6i.large", "autoScalerMin": 1.0, "autoScalerMax": 7.0, "administrators": []any{fingerprint},
				},
			},
			{Action: auditlog.ActionAdminKubeconfig, Status: http.StatusOK, By: by, After: auditlog.Fields{"cluster": "c-one", "tenant": "acme"}},
			{Action: operation.KindDeprovisionNoInstall, Status: http.StatusAccepted, By: by, Before: whole},
		}

		if diff := cmp.Diff(want, f.auditOf(status.RuntimeID)); diff != "" {
			f.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestKubeconfigIsNotIssuedUnaudited(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		operationID, runtimeID := f.provision("acme", "", "c-one")
		f.finish(operationID, process.Succeeded)

		f.recordError = errors.New("the disk is full")

		status, err := f.service.RuntimeStatus(f.Context(), caller("acme", ""), runtimeID, orders.RuntimeFields{Kubeconfig: true})
		if !failure.Is(err, failure.Transient) || status.Kubeconfig != nil {
			f.Errorf("want no kubeconfig and a transient error, got %v, %v", status.Kubeconfig, err)
		}
	})
}
