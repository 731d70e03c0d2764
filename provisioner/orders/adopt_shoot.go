package orders

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/objectdiff"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// reasonAdopted is the reason that timelines and the audit log show for an adoption.
const reasonAdopted = "adopted Shoot"

// Adopter checks and patches Shoots that other programs have created. *gardener.Client implements it.
type Adopter interface {
	CheckBindings(ctx context.Context, read *gardencorev1beta1.Shoot, binding string) error
	Claim(ctx context.Context, read *gardencorev1beta1.Shoot, binding string, owner metav1.ObjectMeta) (changed bool, err error)
}

// Adoption is the order to take over a Shoot.
type Adoption struct {
	ShootName string
	// InstanceID is the ID of the service instance, and Name the display name of the runtime; both may be empty.
	InstanceID, Name string
	// CredentialsBinding is the name of the CredentialsBinding that replaces a SecretBinding. If it is empty, the CredentialsBinding
	// with the SecretBinding's name is used. A Shoot that already has a CredentialsBinding keeps it.
	CredentialsBinding string
	Administrators     []string
	ClientData         *string
	// Generation is the generation of the Shoot in the dry run, or nil. The adoption fails if the generation has changed.
	Generation *int
	// If DryRun is set, the adoption is only checked and described.
	DryRun bool
}

// Adopted describes a Shoot that was taken over or, in a dry run, can be taken over.
type Adopted struct {
	RuntimeID  string
	Generation int
	// Earlier reports that the Shoot was adopted before, for the same tenant and instance.
	Earlier bool
	Cluster *spec.Cluster
	// Changes lists what the adoption and the runtime's first change modify in the Shoot.
	Changes []objectdiff.Change
	// NotInOrder lists the paths of the fields that a new Shoot for an order of the broker would not have. Changes of the runtime keep
	// these fields.
	NotInOrder []string
}

// AdoptShoot takes over a Shoot that no runtime owns. It patches the Shoot before it stores the row. The ID of the runtime is
// derived from the UID of the Shoot, so if storing the row fails, a repeated call stores it. A Shoot that its owner has taken back can
// be adopted again.
//
// The error is failure.Invalid if a field of the order is invalid, and failure.NotFound if the Shoot does not exist. It is
// failure.Conflict if another runtime owns the Shoot, or if the Shoot is being deleted or has changed since the dry run. If the
// Shoot cannot be adopted for another reason, the error is failure.Permanent and contains the reason.
func (s *Service) AdoptShoot(ctx context.Context, caller Caller, wanted Adoption) (Adopted, error) {
	if err := validation.Adoption(wanted, wanted.Name, wanted.Administrators); err != nil {
		return Adopted{}, err
	}

	present, err := s.Shoots.Get(ctx, wanted.ShootName)
	if err != nil {
		return Adopted{}, unavailable(err)
	}

	found := Adopted{Generation: int(present.Generation)}
	if found.RuntimeID, err = s.adoptedID(ctx, present.UID); err != nil {
		return Adopted{}, err
	}

	if earlier, err := s.adoptedBefore(ctx, caller, wanted, found); err != nil || earlier.Earlier {
		return earlier, err
	}

	if err := adoptable(present, found.RuntimeID, caller.Tenant); err != nil {
		return Adopted{}, err
	}

	if wanted.Generation != nil && *wanted.Generation != found.Generation {
		return Adopted{}, failure.New(failure.Conflict, "the Shoot %q has changed since the dry run: repeat the dry run", present.Name)
	}

	binding := cmp.Or(ptr.Deref(present.Spec.CredentialsBindingName, ""), wanted.CredentialsBinding,
		ptr.Deref(present.Spec.SecretBindingName, "")) //nolint:staticcheck // Old Shoots have the deprecated field.
	if err := s.Adopter.CheckBindings(ctx, present, binding); err != nil {
		return Adopted{}, unavailable(err)
	}

	runtime, err := s.adopted(caller, wanted, present, binding, &found)
	if err != nil || wanted.DryRun {
		return found, err
	}

	return found, s.claim(ctx, present, binding, runtime)
}

// adoptedID returns the ID of the runtime for a Shoot with the given UID. If the Shoot was adopted before and its owner has taken it
// back, the runtime of the earlier adoption is recorded as deleted, and the Provisioner deletes Shoots with the ID of a deleted
// runtime. The ID of the next adoption is therefore derived from the earlier ID.
func (s *Service) adoptedID(ctx context.Context, uid types.UID) (string, error) {
	source := "shoot " + string(uid)

	for {
		id := uuid.NewSHA1(uuid.NameSpaceOID, []byte(source)).String()

		earlier, err := s.Runtimes.Get(ctx, s.Runtimes.Reader(), id)
		if errors.Is(err, storage.ErrNotFound) || err == nil && earlier.DeletedAt.IsZero() {
			return id, nil
		}

		if err != nil {
			return "", unavailable(err)
		}

		source = "shoot " + string(uid) + " after " + id
	}
}

// adoptedBefore returns the existing runtime if the Shoot was already adopted for the tenant and the instance, or a zero Adopted
// if no runtime has the name of the Shoot. The error is failure.Conflict if another runtime has the name.
func (s *Service) adoptedBefore(ctx context.Context, caller Caller, wanted Adoption, found Adopted) (Adopted, error) {
	existing, err := s.Runtimes.OfShoot(ctx, s.Runtimes.Reader(), wanted.ShootName)
	if errors.Is(err, storage.ErrNotFound) {
		return Adopted{}, nil
	}

	if err != nil {
		return Adopted{}, unavailable(err)
	}

	order, err := operation.OrderOf(existing)
	if err != nil {
		return Adopted{}, err
	}

	if existing.ID != found.RuntimeID || existing.Tenant != caller.Tenant || order.InstanceID() != wanted.InstanceID {
		return Adopted{}, failure.New(failure.Conflict, "the Shoot %q belongs to a runtime of this Provisioner", wanted.ShootName)
	}

	found.Earlier, found.Cluster = true, order.ClusterConfig.GardenerConfig

	return found, nil
}

// adoptable returns nil, or an error with the reason why the Shoot cannot be adopted. runtimeID is the ID that its runtime would
// get.
func adoptable(present *gardencorev1beta1.Shoot, runtimeID, tenant string) error {
	owner := cmp.Or(present.Annotations[shoot.AnnotationRuntimeID], runtimeID)
	last := present.Status.LastOperation
	name := present.Name

	switch {
	case owner != runtimeID:
		return failure.New(failure.Conflict, "the Shoot %q belongs to the runtime %s, which is not in the database of this Provisioner: run 'ebctl "+
			"reconcile' or 'provisioner adopt'", name, owner)
	case present.Annotations[shoot.AnnotationRuntimeID] != "" && present.Labels[shoot.LabelAccount] != tenant:
		return failure.New(failure.Conflict, "the Shoot %q is part of an unfinished adoption by another account", name)
	case present.DeletionTimestamp != nil:
		return failure.New(failure.Conflict, "Gardener is deleting the Shoot %q", name)
	case last == nil || last.State != gardencorev1beta1.LastOperationStateSucceeded:
		return failure.New(failure.Permanent, "Gardener's last operation on the Shoot %q has not succeeded: wait until it has, or repair the Shoot", name)
	case shoot.Asleep(present):
		return failure.New(failure.Permanent, "the Shoot %q is hibernated: wake it up first", name)
	default:
		return nil
	}
}

// adopted completes the description of the adoption and returns the row of the runtime. The error is failure.Permanent if the first
// change would affect more than the owner and the settings of this Provisioner.
func (s *Service) adopted(caller Caller, wanted Adoption, present *gardencorev1beta1.Shoot, binding string, found *Adopted) (runtimes.Runtime, error) {
	cluster, err := shoot.OrderOf(present, binding)
	if err != nil {
		return runtimes.Runtime{}, err
	}

	order := spec.Runtime{
		Metadata:      &spec.Metadata{Name: cmp.Or(wanted.Name, present.Name)},
		ClusterConfig: &spec.ClusterConfig{GardenerConfig: cluster, Administrators: wanted.Administrators}, ClientData: wanted.ClientData,
	}
	if wanted.InstanceID != "" {
		order.Metadata.Labels = map[string]any{spec.LabelInstance: wanted.InstanceID}
	}

	configuration, err := spec.Encode(order)
	if err != nil {
		return runtimes.Runtime{}, failure.Wrap(failure.Internal, err, "the order cannot be encoded")
	}

	runtime := runtimes.Runtime{
		ID: found.RuntimeID, Tenant: caller.Tenant, SubAccount: caller.SubAccount,
		OriginalTenant: caller.OriginalTenant, OriginalSubAccount: caller.OriginalSubAccount,
		ShootName: present.Name, ProvisionedBy: uuid.NewSHA1(uuid.NameSpaceOID, []byte("creation "+found.RuntimeID)).String(),
		Configuration: configuration, CreatedAt: present.CreationTimestamp.Time, Provider: cluster.Provider, Region: cluster.Region,
	}

	objects, err := s.Build(runtime, runtime.ProvisionedBy)
	if err != nil {
		return runtime, err
	}

	found.Cluster = cluster
	if found.Changes, err = objects.FirstChange(present); err != nil {
		return runtime, err
	}

	if former := ptr.Deref(present.Spec.SecretBindingName, ""); former != "" { //nolint:staticcheck // Old Shoots have the deprecated field.
		found.Changes = append(found.Changes, objectdiff.Change{Path: "spec.secretBindingName", Present: strconv.Quote(former)})
	}

	if lost := shoot.Inexpressible(found.Changes); len(lost) > 0 {
		var texts []string
		for _, each := range lost {
			texts = append(texts, each.String())
		}

		return runtime, failure.New(failure.Permanent, "an order cannot express the Shoot %q: the first change of the runtime would also modify %s",
			present.Name, strings.Join(texts, "; "))
	}

	if found.NotInOrder, err = s.notInOrder(runtime, order, present); err != nil {
		return runtime, err
	}

	changed := objectdiff.Paths(found.Changes)
	found.NotInOrder = slices.DeleteFunc(found.NotInOrder, func(path string) bool { return slices.Contains(changed, path) })

	return runtime, nil
}

// notInOrder returns the paths of the fields that a new Shoot for an order of the broker would not have. Such an order has the values of
// the given one, but neither additional worker pools nor a failure tolerance of the control plane.
func (s *Service) notInOrder(runtime runtimes.Runtime, order spec.Runtime, present *gardencorev1beta1.Shoot) ([]string, error) {
	cluster := *order.ClusterConfig.GardenerConfig
	cluster.AdditionalWorkers, cluster.ControlPlaneFailureTolerance = nil, nil
	order.ClusterConfig = &spec.ClusterConfig{GardenerConfig: &cluster, Administrators: order.ClusterConfig.Administrators}

	configuration, err := spec.Encode(order)
	if err != nil {
		return nil, failure.Wrap(failure.Internal, err, "the order cannot be encoded")
	}

	runtime.Configuration = configuration

	objects, err := s.Build(runtime, runtime.ProvisionedBy)
	if err != nil {
		return nil, err
	}

	return objects.NotInOrder(present)
}

// claim marks the Shoot as owned, and then stores the runtime together with the operation that created it.
func (s *Service) claim(ctx context.Context, present *gardencorev1beta1.Shoot, binding string, runtime runtimes.Runtime) error {
	changed, err := s.Adopter.Claim(ctx, present, binding, metav1.ObjectMeta{
		Labels:      map[string]string{shoot.LabelAccount: runtime.Tenant},
		Annotations: map[string]string{shoot.AnnotationRuntimeID: runtime.ID},
	})
	if err != nil {
		return unavailable(err)
	}

	payload, err := json.Marshal(operation.Data{Runtime: runtime})
	if err != nil {
		return fmt.Errorf("encoding the data of an operation: %w", err)
	}

	_, err = s.transact(ctx, func(tx storage.Tx) (operation.Status, error) {
		inserted, err := s.Runtimes.Insert(ctx, tx, runtime)
		if err != nil {
			return operation.Status{}, err
		}

		if !inserted {
			return operation.Status{}, failure.New(failure.Conflict, "another runtime now has the same ID or Shoot name: repeat the dry run")
		}

		if err := s.Operations.InsertEnded(ctx, tx, process.New{
			ID: runtime.ProvisionedBy, Kind: operation.KindProvisionNoInstall, InstanceID: runtime.ID, Tenant: runtime.Tenant, Payload: payload,
			Why: reasonAdopted, At: runtime.CreatedAt,
		}, operations.Ending{State: process.Succeeded, Began: runtime.CreatedAt, At: s.Clock.Now()}); err != nil {
			return operation.Status{}, err
		}

		return operation.Status{}, s.Recorder.Record(ctx, tx, auditlog.Entry{
			Action: auditlog.ActionAdopt, InstanceID: runtime.ID, Status: http.StatusOK, Reason: reasonAdopted,
			After: auditlog.Fields{
				"cluster": runtime.ShootName, "tenant": runtime.Tenant, "subAccount": runtime.SubAccount, "provider": runtime.Provider,
				"region": runtime.Region, "shootChanged": changed,
			},
		})
	})

	return err
}
