package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/objectdiff"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/takeover"
)

// reasonAdopted is the reason for an adoption, in timelines and in the audit log.
const reasonAdopted = "adopted from Kyma Environment Broker"

// Runtimes reads the Provisioner's runtimes. provisionerclient.Client implements its Adopted method. Errors carry a failure.Kind.
type Runtimes interface {
	Adopted(ctx context.Context, tenant, runtimeID string) (provisionerclient.Adopted, error)
	// Account returns the account that owns a runtime, or an error of kind failure.NotFound.
	Account(ctx context.Context, runtimeID string) (string, error)
	// Order returns the stored order of a runtime, in the form of the Provisioner's operator API.
	Order(ctx context.Context, runtimeID string) (any, error)
}

// Adopter takes over instances. All fields are required.
type Adopter struct {
	Former     *takeover.Database
	Cipher     *takeover.Cipher
	DB         *storage.DB
	Instances  *instances.Store
	Operations *operations.Store
	Endpoints  *endpoints.Store
	Objects    *outsideobjects.Store
	Recorder   *audit.Recorder
	Catalog    *catalog.Catalog
	Runtimes   Runtimes
	Periods    expiry.Periods
	// Platform owns the instances. Instances that its regions or tenants exclude are skipped.
	Platform auth.Platform
	// Region is the platform region of instances for which KEB stored no region.
	Region string
	Clock  clock.PassiveClock
}

// Run takes over the selected instances and returns the report. An error means that the run could not start or continue.
// Instances that were taken over before the error remain taken over.
func (a *Adopter) Run(ctx context.Context, options takeover.Options) (takeover.Report, error) {
	report := takeover.Report{Program: KEB().Name, Objects: "instances", DryRun: options.DryRun}

	if err := a.checkFormer(ctx, options); err != nil {
		return report, err
	}

	found := map[string]bool{}

	for after := ""; ; {
		page, err := readPage(ctx, a.Former, after)
		if err != nil {
			return report, err
		}

		for _, each := range page {
			after = each.ID

			names := each.names()
			if !options.Selected(names...) {
				continue
			}

			for _, name := range names {
				found[name] = true
			}

			if err := a.adopt(ctx, each, options.DryRun, &report); err != nil {
				return report, err
			}
		}

		if len(page) < takeover.Page {
			break
		}
	}

	for _, wanted := range options.Only {
		if !found[wanted] {
			report.Skip(wanted, "", "Kyma Environment Broker has no such instance")
		}
	}

	report.LeftBehind = leftBehind()

	return report, nil
}

// checkFormer returns an error if KEB's database is not ready to be taken over, or if the key does not decrypt its values.
func (a *Adopter) checkFormer(ctx context.Context, options takeover.Options) error {
	if err := a.Former.Check(ctx, KEB(), options.IgnoreUsers); err != nil {
		return err
	}

	encrypted, err := samples(ctx, a.Former)
	if err != nil {
		return err
	}

	return takeover.CheckKey(a.Cipher, encrypted)
}

// names returns the names by which options can select the instance: its ID and the name of its Shoot.
func (i formerInstance) names() []string {
	names := []string{i.ID}
	if newest := i.newest(typeProvision); newest != nil {
		names = append(names, newest.ShootName)
	}

	return names
}

// leftBehind lists the objects that this broker does not remove, because only KEB knows them.
func leftBehind() []string {
	return []string{
		"Kyma resources and kubeconfig Secrets in the control plane: when an adopted instance is deleted, remove its runtime from Lifecycle Manager",
		"credentials of the SAP BTP service operator in runtimes, with the cluster IDs that KEB chose",
		"orchestrations, runtime states and events in the tables of KEB",
	}
}

// adopt takes over one instance, or adds it to the report with the reason why it is skipped. An error ends the run.
func (a *Adopter) adopt(ctx context.Context, each formerInstance, dryRun bool, report *takeover.Report) error {
	report.Found++

	exists, err := a.Instances.Exists(ctx, a.DB.Reader(), each.ID)
	if err != nil {
		return err
	}

	if exists {
		report.Earlier++

		return nil
	}

	instance, notes, err := a.instanceOf(ctx, each)
	if err == nil {
		err = checkExclusive(ctx, a.DB, a.Instances, instance)
	}

	var changes []objectdiff.Change

	if err == nil {
		var note string
		if changes, note, err = a.preview(ctx, instance); note != "" && len(notes) == 0 {
			notes = append(notes, note)
		}
	}

	if err == nil && !instance.ExpiresAt.IsZero() && instance.ExpiredAt.IsZero() && instance.ExpiresAt.Before(a.Clock.Now()) {
		notes = append(notes, fmt.Sprintf("its lifetime in plan %s ended at %s: soon after the broker starts, the expiry job expires "+
			"it and removes its cluster",
			instance.PlanName, instance.ExpiresAt.UTC().Format(time.RFC3339)))
	}

	if err == nil && !dryRun {
		err = a.store(ctx, each, instance)
	}

	if err != nil {
		refusal, is := errors.AsType[*failure.Error](err)
		if !is || refusal.Kind == failure.Transient || ctx.Err() != nil {
			return fmt.Errorf("adopting instance %s: %w", each.ID, err)
		}

		report.Skip(each.ID, instance.ShootName, strings.TrimSpace(refusal.ForOperators()))

		return nil
	}

	report.Adopted++
	report.Previews = append(report.Previews, takeover.Preview{ID: each.ID, Name: instance.ShootName, Changes: changes})

	for _, note := range notes {
		report.Note("instance %s (%s): %s", each.ID, instance.ShootName, note)
	}

	return nil
}

// checkExclusive returns an error if the plan allows one instance per account, and the account already has another one.
func checkExclusive(ctx context.Context, db *storage.DB, store *instances.Store, instance environment.Instance) error {
	if instance.Exclusive == "" {
		return nil
	}

	holder, err := store.Holder(ctx, db.Reader(), instances.Claimed{
		Exclusive: instance.Exclusive, GlobalAccountID: instance.GlobalAccountID, PlanID: instance.PlanID, Except: instance.ID,
	})
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	return failure.New(failure.Permanent, "plan %s allows one instance per account, and the account already has instance %s", instance.PlanName, holder)
}

// store adds the instance's row, its operations and the entry in the audit log.
func (a *Adopter) store(ctx context.Context, former formerInstance, instance environment.Instance) error {
	err := a.DB.InTx(ctx, func(tx storage.Tx) error {
		insertion, err := a.Instances.Insertion(instance)
		if err == nil {
			err = storage.Apply(ctx, tx, insertion)
		}

		if err != nil {
			return err
		}

		// An insertion leaves out the columns that new instances do not need, so an update sets them.
		if err := a.Instances.Update(ctx, tx, instance); err != nil {
			return err
		}

		if err := a.insertOperations(ctx, tx, former, instance); err != nil {
			return err
		}

		if instance.RuntimeID != "" {
			if err := a.Endpoints.Add(ctx, tx, instance.ID, a.Clock.Now()); err != nil {
				return err
			}
		}

		for _, object := range former.objectsOf(instance) {
			if err := a.Objects.Insert(ctx, tx, object, a.Clock.Now()); err != nil {
				return err
			}
		}

		return a.Recorder.Record(ctx, tx, auditlog.Entry{
			Action: auditlog.ActionAdopt, InstanceID: instance.ID, Status: http.StatusOK, Reason: reasonAdopted, After: instance.Shown(),
		})
	})
	if storage.IsDuplicate(err) {
		return failure.New(failure.Permanent,
			"this broker already has an instance with this ID or Shoot name, or the account already has the one instance that the plan allows")
	}

	return err
}

// insertOperations inserts KEB's operations with their original IDs, so that platforms can continue to poll them.
func (a *Adopter) insertOperations(ctx context.Context, tx storage.Tx, former formerInstance, instance environment.Instance) error {
	for _, each := range former.operations {
		kind := former.kindOf(each)
		if kind == "" {
			continue
		}

		operation, err := environment.NewOperation(kind, instance, nil, each.CreatedAt)
		if err != nil {
			return err
		}

		data := environment.Data{
			Instance: instance, Provisioning: former.newest(typeProvision).ID, Ordered: instance.Request.Cluster.Own == nil,
			TargetSecret: instance.Request.Cluster.TargetSecret, ProvisionerOperationID: each.TargetID,
		}
		data.Instance.Request = environment.Request{} // the row contains it

		if operation.Payload, err = json.Marshal(data); err != nil {
			return fmt.Errorf("encoding operation %s: %w", each.ID, err)
		}

		operation.ID, operation.Why = each.ID, reasonAdopted
		if err := a.Operations.InsertEnded(ctx, tx, operation, each.ending()); err != nil {
			return err
		}
	}

	return nil
}
