package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

const (
	// batch is the maximum number of rows in one query. It is far below the parameter limits of both supported databases.
	batch = 500
	// clockSkew is the tolerated difference between the clock of the replica that ended an operation and the clock of the replica
	// that compares.
	clockSkew = 5 * time.Second
)

// Shoots reads the Shoots of the project. *gardener.Client implements it.
type Shoots interface {
	Owned(ctx context.Context) ([]gardener.Owned, error)
	Get(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error)
}

// Director reads the registrations of tenants. *director.Client implements it.
type Director interface {
	List(ctx context.Context, tenant, label string) ([]director.Runtime, error)
	Get(ctx context.Context, tenant, id string) (director.Runtime, error)
}

// Comparer compares the Provisioner's runtimes with Gardener and Director, and restores lost rows. It implements
// operatorserver.Differences and is safe for concurrent use. All fields are required, except Director, which is nil if runtimes
// are not registered.
type Comparer struct {
	DB         *storage.DB
	Runtimes   *runtimes.Store
	Operations *operations.Store
	Recorder   *audit.Recorder
	Shoots     Shoots
	Director   Director
	// Namespace is the namespace of the Gardener project.
	Namespace string
	Clock     clock.PassiveClock
}

// Compare implements operatorserver.Differences.
func (c *Comparer) Compare(ctx context.Context, request operatorserver.Comparison) (operatorserver.Compared, error) {
	compared := &comparison{Comparer: c}
	phases := []operatorserver.Phase{
		{Name: "shoots", System: "Gardener", Run: compared.shoots},
		{Name: "runtimes", System: "Gardener", Run: compared.runtimes},
	}

	if c.Director != nil {
		phases = append(phases, operatorserver.Phase{Name: "tenants", System: "Director", Run: compared.registrations})
	}

	return operatorserver.Compare(ctx, request, c.Clock.Now().Add(-clockSkew), phases...)
}

// comparison holds the state of a comparison while it fills one page of differences.
type comparison struct {
	*Comparer

	owned []gardener.Owned
	read  bool
}

// list returns the Shoots of runtimes, sorted by name. They are read once for each page.
func (c *comparison) list(ctx context.Context) ([]gardener.Owned, error) {
	if c.read {
		return c.owned, nil
	}

	owned, err := c.Shoots.Owned(ctx)
	if err != nil {
		return nil, err
	}

	slices.SortFunc(owned, func(a, b gardener.Owned) int { return cmp.Compare(a.Name, b.Name) })
	c.owned, c.read = owned, true

	return owned, nil
}

// shoots looks for Shoots whose runtimes have no row. Deleted runtimes still have a row, and the orphan remover of package
// service deletes their Shoots.
func (c *comparison) shoots(ctx context.Context, after string, page *operatorserver.ComparedPage) (string, error) {
	owned, err := c.list(ctx)
	if err != nil {
		return "", err
	}

	first, found := slices.BinarySearchFunc(owned, after, func(shoot gardener.Owned, name string) int { return cmp.Compare(shoot.Name, name) })
	if found {
		first++
	}

	for part := range slices.Chunk(owned[first:], batch) {
		ids := make([]string, 0, len(part))
		for _, shoot := range part {
			ids = append(ids, shoot.RuntimeID)
		}

		known, err := c.Runtimes.Summaries(ctx, ids)
		if err != nil {
			return "", err
		}

		for _, shoot := range part {
			if _, has := known[shoot.RuntimeID]; has || shoot.Deleting {
				continue
			}

			page.Add(c.withoutRuntime(ctx, shoot))

			if page.Full() {
				return shoot.Name, nil
			}
		}
	}

	return "", nil
}

// runtimes looks for runtimes whose Shoot is missing.
func (c *comparison) runtimes(ctx context.Context, after string, page *operatorserver.ComparedPage) (string, error) {
	owned, err := c.list(ctx)
	if err != nil {
		return "", err
	}

	owners := make(map[string]string, len(owned))
	for _, shoot := range owned {
		owners[shoot.Name] = shoot.RuntimeID
	}

	filter := runtimes.Filter{Limit: batch}

	moment, id, paged := strings.Cut(after, " ")
	if paged {
		if filter.Before, err = time.Parse(time.RFC3339Nano, moment); err != nil {
			return "", operatorserver.Invalid("cursor is invalid. Use the cursor of the previous response.")
		}

		filter.BeforeID = id
	}

	for {
		listed, err := c.Runtimes.List(ctx, filter)
		if err != nil {
			return "", err
		}

		for _, each := range listed {
			filter.Before, filter.BeforeID = each.Runtime.CreatedAt, each.Runtime.ID

			if settled(each.Operation, page.Began) && owners[each.Runtime.ShootName] != each.Runtime.ID && expectsShoot(each.Operation) {
				page.Add(c.withoutShoot(ctx, each.Runtime, owners[each.Runtime.ShootName]))
			}

			if page.Full() {
				return filter.Before.UTC().Format(time.RFC3339Nano) + " " + filter.BeforeID, nil
			}
		}

		if len(listed) < batch {
			return "", nil
		}
	}
}

// settled reports whether the newest operation of a runtime had ended before the comparison began.
func settled(newest process.Record, began time.Time) bool {
	return newest.State.Terminal() && newest.FinishedAt.Before(began)
}

// expectsShoot reports whether a runtime must have a Shoot after its newest operation. After a failed creation, the Shoot might not
// exist.
func expectsShoot(newest process.Record) bool {
	return newest.State == process.Succeeded || !operation.Provisions(newest.Kind)
}

// withoutRuntime describes a Shoot whose runtime has no row.
func (c *Comparer) withoutRuntime(ctx context.Context, shoot gardener.Owned) operatorapi.Difference {
	difference := operatorapi.Difference{
		Kind: operatorapi.DifferenceKindShootWithoutRuntime, ID: shoot.RuntimeID, RuntimeID: shoot.RuntimeID, ShootName: shoot.Name,
		AccountID: shoot.Tenant,
		Meaning: fmt.Sprintf("Gardener has the Shoot %s, but the Provisioner does not know its runtime. The cluster costs money, and "+
			"nobody can change or delete it through the services.", shoot.Name),
		Commands: []string{operatorserver.Command("kubectl --namespace %s get shoot %s --output yaml", c.Namespace, shoot.Name)},
	}

	restored, err := c.restorable(ctx, shoot)
	difference.InstanceID = cmp.Or(restored.instanceID, shoot.InstanceID)
	difference.Restorable = err == nil

	if err != nil {
		difference.Reason = textOf(err)
		difference.Commands = append(difference.Commands,
			operatorserver.Command("kubectl --namespace %s annotate shoot %s confirmation.gardener.cloud/deletion=true # only if nobody "+
				"needs the cluster", c.Namespace, shoot.Name),
			operatorserver.Command("kubectl --namespace %s delete shoot %s --wait=false", c.Namespace, shoot.Name))
	}

	return difference
}

// withoutShoot describes a runtime whose Shoot is missing. owner is the ID of another runtime that owns a Shoot with the same
// name, or empty.
func (c *Comparer) withoutShoot(ctx context.Context, runtime runtimes.Runtime, owner string) operatorapi.Difference {
	difference := operatorapi.Difference{
		Kind: operatorapi.DifferenceKindRuntimeWithoutShoot, ID: runtime.ID, RuntimeID: runtime.ID, ShootName: runtime.ShootName,
		AccountID: runtime.Account(), InstanceID: c.instanceOf(ctx, runtime.ID),
		Meaning:  fmt.Sprintf("The Provisioner has a runtime whose Shoot %s is not in Gardener. The cluster and its data are gone.", runtime.ShootName),
		Commands: []string{operatorserver.Command("ebctl provisioner runtime get %s", runtime.ID)},
	}

	if owner != "" {
		difference.Meaning = fmt.Sprintf("The Shoot %s of this runtime is gone: the Shoot that has this name belongs to runtime %s. The cluster of this "+
			"runtime is gone.",
			runtime.ShootName, owner)
	}

	if difference.InstanceID != "" {
		difference.Commands = append(difference.Commands, operatorserver.Command("ebctl instance delete %s", difference.InstanceID))
	}

	return difference
}

// instanceOf returns the ID of the service instance in the order for a runtime, or an empty string if it cannot be read.
func (c *Comparer) instanceOf(ctx context.Context, runtimeID string) string {
	runtime, err := c.Runtimes.Get(ctx, c.DB.Reader(), runtimeID)
	if err != nil {
		return ""
	}

	order, err := operation.OrderOf(runtime)
	if err != nil {
		return ""
	}

	return order.InstanceID()
}
