package upgrade_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/test/harness"
)

// unlabeled is the ID of an instance and of its tenant. It is not a valid label value. Version 0.1.0 does not support such tenants.
const unlabeled = "-"

// TestRollback upgrades the stored databases: the current version creates and changes instances. Then the previous version starts
// on the same databases, and serves, changes and deletes the instances of both versions. Instances that it cannot delete must be
// deletable after another upgrade.
func TestRollback(t *testing.T) {
	t.Parallel()

	brokerDatabase, _ := storedDatabase(t, broker)
	provisionerDatabase, rows := storedDatabase(t, provisioner)
	r := newReplicas(t, brokerDatabase, provisionerDatabase)
	r.createStoredShoots(rows)

	r.start(current)
	c := r.broker(current)
	c.WantSucceeded("running")
	c.Create("new", harness.PlanAWS)
	c.Create("new-trial", harness.PlanTrial)
	c.WantSucceeded("new-trial")
	setActive(c, "new-trial", false)
	createAll(c, []string{unlabeled}, harness.PlanAWS)
	c.Update("ready", updateOfMachines())

	for _, id := range []string{"new", "new-trial", "ready"} {
		c.WantSucceeded(id)
	}

	for _, id := range []string{"new", "ready"} {
		bind(c, id, "of-current")
		wantBinding(c, id, "of-current")
	}

	r.stop(current)
	r.start(previous)
	c = r.broker(previous)

	wantParameter(c, "ready", "machineType", machineType)
	wantParameter(c, "updated", "machineType", machineType)
	setActive(c, "new-trial", true)

	for _, id := range []string{"new", "ready", "updated", "running"} {
		c.Update(id, map[string]any{"parameters": map[string]any{"autoScalerMax": 9}})
	}

	for _, id := range []string{"new", "ready", "updated", "running", "new-trial"} {
		c.WantSucceeded(id)
	}

	for _, id := range []string{"new", "ready"} {
		wantBinding(c, id, "of-current")
		unbind(c, id, "of-current")
		wantBindingGone(c, id, "of-current")
		bind(c, id, "of-previous")
		wantBinding(c, id, "of-previous")
	}

	plans := map[string]string{
		"new": harness.PlanAWS, "ready": harness.PlanAWS, "updated": harness.PlanAWS, "running": harness.PlanAWS,
		"suspended": harness.PlanTrial, "new-trial": harness.PlanTrial,
	}
	for id, plan := range plans {
		c.Send(http.MethodGet, harness.InstancePath(id), nil, http.StatusOK)
		c.Delete(id, plan)
	}

	for id := range plans {
		wantGone(c, id)
	}

	// docs/operator/upgrade.md documents that the previous version cannot delete this instance.
	c.Delete(unlabeled, harness.PlanAWS)
	c.WantFailed(unlabeled, "cannot be used as a label")

	r.stop(previous)
	r.start(current)
	c = r.broker(current)
	c.Delete(unlabeled, harness.PlanAWS)
	wantGone(c, unlabeled)

	if shoots := harness.Shoots(t, r.garden); len(shoots) != 0 {
		t.Errorf("%d Shoots remain", len(shoots))
	}
}

// storedDatabase restores the stored PostgreSQL database of a service. It shifts all stored times as if the service had only just
// stopped, so that operations and bindings have not expired.
func storedDatabase(t *testing.T, service string) (replica.Database, *storage.DB) {
	t.Helper()

	const layout = "2006-01-02 15:04:05.999999-07"

	stopped := time.Date(2026, 11, 22, 14, 30, 0, 0, time.UTC)
	passed := time.Since(stopped)
	times := regexp.MustCompile(`'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00'`)

	config, db := restore(t, service, func(dump string) string {
		return times.ReplaceAllStringFunc(dump, func(quoted string) string {
			stored, err := time.Parse(layout, strings.Trim(quoted, "'"))
			if err != nil {
				t.Fatal(err)
			}

			return "'" + stored.Add(passed).UTC().Format(layout) + "'"
		})
	})
	settings := harness.PostgresSettings(config, service)
	settings.SecretKeys = secret.String(strings.TrimSpace(storedKeys(t, storage.DriverPostgres).Reveal()))

	return settings, db
}

// createStoredShoots creates the Shoots of the stored runtimes that are not deleted. The databases were stored without a garden. The
// Shoots are copies of one that the previous version creates, with the same field manager.
func (r *replicas) createStoredShoots(rows *storage.DB) {
	r.Helper()

	stored, err := storage.Select[struct {
		ID        string `db:"id"`
		ShootName string `db:"shoot_name"`
	}](r.Context(), rows.Reader(), `SELECT id, shoot_name FROM runtimes WHERE deleted_at IS NULL`)
	if err != nil {
		r.Fatal(err)
	}

	pattern := r.createPattern()

	for _, each := range stored {
		created := pattern.DeepCopy()
		created.Name = each.ShootName
		created.Labels[shoot.LabelRuntimeID] = each.ID
		created.Annotations[shoot.AnnotationRuntimeID] = each.ID
		created.Annotations[shoot.AnnotationLegacyRuntimeID] = each.ID

		manifest, err := shoot.Manifest(created)
		if err != nil {
			r.Fatal(err)
		}

		if err := r.garden.Client().Apply(r.Context(), client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner("provisioner")); err != nil {
			r.Fatal(err)
		}
	}
}

// createPattern returns a Shoot that the previous version created, without the fields that are set by the API server.
func (r *replicas) createPattern() *gardencorev1beta1.Shoot {
	r.Helper()

	sharing := &replicas{
		T: r.T, garden: r.garden, kubeconfig: r.kubeconfig, running: map[string]map[version]*replicaProcess{broker: {}, provisioner: {}},
		databases: map[string]replica.Database{broker: harness.Postgres(r, broker), provisioner: harness.Postgres(r, provisioner)},
	}
	sharing.toProvisioner = harness.NewFaultProxy(r, sharing.nextProvisioner)
	sharing.start(previous)
	c := sharing.broker(previous)
	c.Create("pattern", harness.PlanAWS)
	c.WantSucceeded("pattern")

	pattern := harness.Shoots(r, r.garden)[0]
	pattern.ObjectMeta = metav1.ObjectMeta{Namespace: pattern.Namespace, Labels: pattern.Labels, Annotations: pattern.Annotations}
	pattern.Status = gardencorev1beta1.ShootStatus{}

	c.Delete("pattern", harness.PlanAWS)
	wantGone(c, "pattern")
	sharing.stop(previous)

	return &pattern
}
