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

// auditOf returns the audit log of the runtime, oldest entry first, with the fields that the tests compare.
func (b *bench) auditOf(runtimeID string) []auditlog.Entry {
	b.Helper()

	found, err := b.entries.List(b.Context(), auditlog.Filter{InstanceID: runtimeID, Limit: 100})
	if err != nil {
		b.Fatal(err)
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
	each(t, func(b *bench) {
		ctx := auth.NewContext(b.Context(), auth.Identity{Name: "broker", Means: auth.ByPassword})

		status, err := b.service.Provision(ctx, caller("acme", "key"), order("c-one"))
		if err != nil {
			b.Fatal(err)
		}

		b.finish(status.ID, process.Succeeded)

		if status, err = b.service.UpgradeShoot(ctx, caller("acme", ""), status.RuntimeID, wider()); err != nil {
			b.Fatal(err)
		}

		if _, err := b.service.RuntimeStatus(ctx, caller("acme", ""), status.RuntimeID, orders.RuntimeFields{Kubeconfig: true}); err != nil {
			b.Fatal(err)
		}

		if _, err := b.service.Deprovision(ctx, caller("acme", ""), status.RuntimeID); err != nil {
			b.Fatal(err)
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

		if diff := cmp.Diff(want, b.auditOf(status.RuntimeID)); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestKubeconfigIsNotIssuedUnaudited(t *testing.T) {
	each(t, func(b *bench) {
		operationID, runtimeID := b.provision("acme", "", "c-one")
		b.finish(operationID, process.Succeeded)

		b.unwritten = errors.New("the disk is full")

		status, err := b.service.RuntimeStatus(b.Context(), caller("acme", ""), runtimeID, orders.RuntimeFields{Kubeconfig: true})
		if !failure.Is(err, failure.Transient) || status.Kubeconfig != nil {
			b.Errorf("want no kubeconfig and a transient error, got %v, %v", status.Kubeconfig, err)
		}
	})
}
