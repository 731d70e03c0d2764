package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/uuid"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/objectdiff"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/takeover"
)

// reasonAdopted is the reason that timelines and the audit log show for an adoption.
const reasonAdopted = "adopted from Kyma Provisioner"

const (
	// noID is the cursor of the first page. It sorts before all IDs.
	noID = "00000000-0000-0000-0000-000000000000"
	// maxAttempts is the maximum number of attempts for one runtime. A transient error, such as a concurrent change of the Shoot, leads to
	// another attempt.
	maxAttempts = 5
)

// Shoots reads, checks and patches the Shoots of the project. *gardener.Client implements it.
type Shoots interface {
	Owned(ctx context.Context) ([]gardener.Owned, error)
	Get(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error)
	CheckBindings(ctx context.Context, read *gardencorev1beta1.Shoot, binding string) error
	CheckSecret(ctx context.Context, name string) error
	Adopt(ctx context.Context, read *gardencorev1beta1.Shoot, binding string) (bool, error)
}

// Adopter takes over runtimes. All fields are required, except Cipher, which may be nil if no value is encrypted.
type Adopter struct {
	Former     *takeover.Database
	Cipher     *takeover.Cipher
	DB         *storage.DB
	Runtimes   *runtimes.Store
	Operations *operations.Store
	Recorder   *audit.Recorder
	Shoots     Shoots
	// Build returns the Shoot for the given runtime and operation ID. Validate checks an order against the rules for new orders.
	Build    func(runtime runtimes.Runtime, operationID string) (*shoot.Objects, error)
	Validate func(spec.Runtime) error
	// Registered reports whether runtimes are registered in Director.
	Registered bool
	Clock      clock.PassiveClock
}

// Run takes over the selected runtimes and returns the report. An error means that the run could not start or continue. Runtimes that
// were adopted before the error stay adopted.
func (a *Adopter) Run(ctx context.Context, options takeover.Options) (takeover.Report, error) {
	report := takeover.Report{Program: Kyma().Name, Objects: "runtimes", DryRun: options.DryRun}

	if err := a.Former.Check(ctx, Kyma(), options.IgnoreUsers); err != nil {
		return report, err
	}

	encrypted, err := samples(ctx, a.Former)
	if err != nil {
		return report, err
	}

	if err := takeover.CheckKey(a.Cipher, encrypted); err != nil {
		return report, err
	}

	known := map[string]bool{}

	for after := noID; ; {
		clusters, err := readPage(ctx, a.Former, after)
		if err != nil {
			return report, err
		}

		for _, each := range clusters {
			after, known[each.ID] = each.ID, true

			if options.Selected(each.ID, each.Name.String) {
				if err := a.adopt(ctx, each, options.DryRun, &report); err != nil {
					return report, err
				}
			}
		}

		if len(clusters) < takeover.Page {
			err := a.conclude(ctx, known, options, &report)

			return report, err
		}
	}
}

// adopt takes over one runtime. If it cannot, it adds the reason to the report. An error ends the run.
func (a *Adopter) adopt(ctx context.Context, each cluster, dryRun bool, report *takeover.Report) error {
	report.Found++

	exists, err := a.Runtimes.Exists(ctx, a.DB.Reader(), each.ID)
	if err != nil {
		return err
	}

	if exists {
		report.Earlier++

		return nil
	}

	found, err := a.attempt(ctx, each, dryRun)
	if err != nil {
		refusal, is := errors.AsType[*failure.Error](err)
		if !is || refusal.Kind == failure.Transient || ctx.Err() != nil {
			return fmt.Errorf("adopting runtime %s: %w", each.ID, err)
		}

		report.Skip(each.ID, each.Name.String, reasonOf(err))

		return nil
	}

	report.Adopted++
	report.Previews = append(report.Previews, takeover.Preview{ID: each.ID, Name: each.Name.String, Changes: found.changes})

	if gardener.ToAdopt(found.shoot, found.binding()) {
		report.ShootsChanged = append(report.ShootsChanged, each.Name.String)
	}

	if each.HasKyma {
		report.Note("runtime %s (%s) has an active Kyma configuration, which is not taken over: this Provisioner will not upgrade or remove that Kyma installation", each.ID, each.Name.String)
	}

	if err := a.Validate(found.order); err != nil {
		report.Note("runtime %s (%s): its order breaks a rule for new orders: %s", each.ID, each.Name.String, reasonOf(err))
	}

	return nil
}

// attempt checks and stores one runtime. It repeats both immediately after a transient error, because Gardener may change the Shoot between
// the check and the patch.
func (a *Adopter) attempt(ctx context.Context, each cluster, dryRun bool) (candidate, error) {
	for attempt := 1; ; attempt++ {
		found, err := a.check(ctx, each)
		if err == nil && !dryRun {
			err = a.store(ctx, found)
		}

		if !failure.Is(err, failure.Transient) || attempt == maxAttempts {
			return found, err
		}
	}
}

// candidate is a runtime that can be adopted.
type candidate struct {
	cluster

	shoot   *gardencorev1beta1.Shoot
	order   spec.Runtime
	runtime runtimes.Runtime
	// changes lists the Shoot fields that the runtime's first change would modify.
	changes []objectdiff.Change
}

// binding returns the name of the cluster's CredentialsBinding.
func (c candidate) binding() string { return c.TargetSecret.String }

// check prepares the adoption of a cluster, or returns an error that says why the cluster cannot be adopted. It does not change
// anything.
func (a *Adopter) check(ctx context.Context, each cluster) (candidate, error) {
	found := candidate{cluster: each}

	switch {
	case !each.ConfigID.Valid:
		return found, failure.New(failure.Permanent, "the cluster has no row in gardener_config")
	case each.creation == nil || each.creation.State != formerSucceeded:
		return found, failure.New(failure.Permanent, "its creation has not succeeded: deprovision it with Kyma Provisioner, and order it again")
	}

	other, err := a.Runtimes.OfShoot(ctx, a.DB.Reader(), each.Name.String)
	if err == nil {
		return found, failure.New(failure.Permanent, "another runtime of this Provisioner, %s, has the same Shoot name", other.ID)
	}

	if !errors.Is(err, storage.ErrNotFound) {
		return found, err
	}

	if found.shoot, err = a.Shoots.Get(ctx, each.Name.String); err != nil {
		return found, err
	}

	if owner := found.shoot.Annotations[shoot.AnnotationRuntimeID]; owner != each.ID {
		return found, failure.New(failure.Permanent, "the annotation %s of the Shoot is %q, which is not the ID of this runtime", shoot.AnnotationRuntimeID, owner)
	}

	if found.shoot.DeletionTimestamp != nil {
		return found, failure.New(failure.Permanent, "Gardener is deleting the Shoot: wait until it is gone")
	}

	if found.order, err = each.orderOf(found.shoot, a.Cipher); err != nil {
		return found, failure.New(failure.Permanent, "%s", err)
	}

	if found.runtime, err = each.runtimeOf(found.order); err != nil {
		return found, err
	}

	if found.changes, err = a.firstChange(found); err != nil {
		return found, err
	}

	if err := a.Shoots.CheckBindings(ctx, found.shoot, found.binding()); err != nil {
		return found, err
	}

	for _, provider := range each.providers {
		if err := a.Shoots.CheckSecret(ctx, provider.SecretName); err != nil {
			return found, err
		}
	}

	return found, nil
}

// firstChange returns the Shoot fields that the cluster's first change would modify, except those that the adoption itself
// patches.
func (a *Adopter) firstChange(found candidate) ([]objectdiff.Change, error) {
	objects, err := a.Build(found.runtime, found.creation.ID)
	if err != nil {
		return nil, err
	}

	patched := found.shoot.DeepCopy()
	if ptr.Deref(patched.Spec.SecretBindingName, "") != "" { //nolint:staticcheck // Kyma Provisioner sets the deprecated field.
		patched.Spec.CredentialsBindingName = new(found.binding())
	}

	return objects.FirstChange(patched)
}

// store patches the Shoot and then stores the runtime with its operations. If it fails after the patch, the next run stores the
// runtime.
func (a *Adopter) store(ctx context.Context, found candidate) error {
	changed, err := a.Shoots.Adopt(ctx, found.shoot, found.binding())
	if err != nil {
		return err
	}

	return a.DB.InTx(ctx, func(tx storage.Tx) error {
		inserted, err := a.Runtimes.Insert(ctx, tx, found.runtime)
		if err != nil {
			return err
		}

		if !inserted {
			return failure.New(failure.Permanent, "another runtime of this Provisioner has the same ID or Shoot name")
		}

		if err := a.insertOperations(ctx, tx, found); err != nil {
			return err
		}

		return a.Recorder.Record(ctx, tx, auditlog.Entry{
			Action: auditlog.ActionAdopt, InstanceID: found.runtime.ID, Status: http.StatusOK, Reason: reasonAdopted,
			After: auditlog.Fields{
				"cluster": found.runtime.ShootName, "tenant": found.runtime.Tenant, "subAccount": found.runtime.SubAccount,
				"provider": found.runtime.Provider, "region": found.runtime.Region, "shootChanged": changed,
			},
		})
	})
}

// insertOperations inserts the operation that created the cluster and the newest other operation, unless the latter is older than
// the creation. Both keep their IDs. If the Shoot is hibernated and the last of these operations is not a hibernation,
// insertOperations adds a hibernation.
func (a *Adopter) insertOperations(ctx context.Context, tx storage.Tx, found candidate) error {
	asleep := shoot.ToSleep(found.shoot)
	all := []formerOperation{*found.creation}

	if found.change != nil && !found.change.Began.Before(found.creation.Began) {
		all = append(all, *found.change)
	}

	if last := all[len(all)-1]; asleep && last.Type != "HIBERNATE" {
		all = append(all, formerOperation{ID: uuid.NewString(), Type: "HIBERNATE", State: formerSucceeded, Began: last.Began, Ended: last.Ended})
	}

	for i, each := range all {
		ending, err := each.ending()
		if err != nil {
			return failure.New(failure.Permanent, "%s", err)
		}

		kind, known := kinds()[each.Type]
		if !known {
			return failure.New(failure.Permanent, "operation %s has the unknown type %s", each.ID, each.Type)
		}

		payload, err := json.Marshal(operation.Data{Runtime: found.runtime, Asleep: asleep && i == len(all)-1, Registered: a.Registered})
		if err != nil {
			return fmt.Errorf("encoding operation %s: %w", each.ID, err)
		}

		if err := a.Operations.InsertEnded(ctx, tx, process.New{
			ID: each.ID, Kind: kind, InstanceID: found.runtime.ID, Tenant: found.runtime.Tenant, Payload: payload, Why: reasonAdopted, At: each.Began,
		}, ending); err != nil {
			return err
		}
	}

	return nil
}

// conclude completes the report with the Shoots that have no row in either database, and with information for operators.
func (a *Adopter) conclude(ctx context.Context, known map[string]bool, options takeover.Options, report *takeover.Report) error {
	owned, err := a.Shoots.Owned(ctx)
	if err != nil {
		return err
	}

	for _, each := range owned {
		if known[each.RuntimeID] {
			continue
		}

		exists, err := a.Runtimes.Exists(ctx, a.DB.Reader(), each.RuntimeID)
		if err != nil {
			return err
		}

		if !exists {
			report.Note("the Shoot %s belongs to runtime %s, which the database of Kyma Provisioner does not contain: the Shoot is not changed", each.Name, each.RuntimeID)
		}
	}

	for _, wanted := range options.Only {
		if !known[wanted] && !slices.ContainsFunc(owned, func(each gardener.Owned) bool { return each.Name == wanted && known[each.RuntimeID] }) {
			report.Skip(wanted, "", "Kyma Provisioner has no such cluster")
		}
	}

	if len(report.ShootsChanged) > 0 {
		report.Irreversible = []string{
			"the patch of these Shoots: once credentialsBindingName is set, Gardener does not allow its removal, and Kyma Provisioner cannot change a Shoot that has it",
		}
	}

	report.FirstChange = []string{
		"the extension " + shoot.ExtensionOIDC + " and other missing extensions of APP_GARDENER_EXTENSIONS are added",
		"SSH access to the machines is disabled",
		"the order's identity provider is restored, as a structured authentication configuration in a ConfigMap",
		"EU access is set as an access restriction, if the order has it",
	}
	report.LeftBehind = []string{"the tables of Kyma Provisioner, with encrypted kubeconfigs: keep them as long as you may return to Kyma Provisioner, then drop them"}

	if !a.Registered {
		report.LeftBehind = append(report.LeftBehind, "registrations in Director: APP_DIRECTOR_ENABLED is not true")
	}

	return nil
}

// reasonOf returns the text of an error for operators, without surrounding spaces.
func reasonOf(err error) string { return strings.TrimSpace(failure.Of(err).ForOperators()) }
