package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/deprovisioning"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
)

const (
	// pageSize is the maximum number of runtimes or instances in one query. The operator API returns no larger pages.
	pageSize = 100
	// clockSkew is the maximum difference between the clock of the replica that ended an operation and the clock of the replica that
	// compares.
	clockSkew = 5 * time.Second
)

// Accounts lists the ServiceAccounts of bindings in a runtime. clusterclient.Access implements it.
type Accounts interface {
	Accounts(ctx context.Context, instance environment.Instance) ([]string, error)
}

// Comparer compares instances with runtimes and restores lost instances. It implements operatorserver.Differences and is safe for
// concurrent use. All fields except Systems are required.
type Comparer struct {
	DB          *storage.DB
	Instances   *instances.Store
	Operations  *operations.Store
	Bindings    *bindings.Store
	Endpoints   *endpoints.Store
	Leftovers   *leftovers.Store
	Objects     *outsideobjects.Store
	Systems     Systems
	Recorder    *audit.Recorder
	Provisioner *Provisioner
	Accounts    Accounts
	Clock       clock.PassiveClock
	Log         logrus.FieldLogger
}

// Compare implements operatorserver.Differences.
func (c *Comparer) Compare(ctx context.Context, request operatorserver.Comparison) (operatorserver.Compared, error) {
	phases := []operatorserver.Phase{
		{Name: "instances", System: "Provisioner", Run: c.instances},
		{Name: "runtimes", System: "Provisioner", Run: c.runtimes},
		{Name: "provisioner", System: "Provisioner", Run: c.provisioner},
	}

	if request.Bindings {
		phases = append(phases, operatorserver.Phase{Name: "bindings", System: "runtimes", Run: c.bindings})
	}

	return operatorserver.Compare(ctx, request, c.Clock.Now().Add(-clockSkew), phases...)
}

// settled reports whether the newest operation of an instance had ended before the comparison began.
func settled(newest process.Record, began time.Time) bool {
	return newest.State.Terminal() && newest.FinishedAt.Before(began)
}

// eachInstance calls visit for all instances after the position, newest first, until the page is full. It returns the position of
// the last visited instance, or "" at the end.
func (c *Comparer) eachInstance(ctx context.Context, after string, page *operatorserver.ComparedPage,
	visit func(listed []instances.Listed) (visited int, err error),
) (string, error) {
	filter := instances.Filter{Limit: pageSize}

	if moment, id, paged := strings.Cut(after, " "); paged {
		var err error
		if filter.Before, err = time.Parse(time.RFC3339Nano, moment); err != nil {
			return "", operatorserver.Invalid("cursor is invalid. Use the cursor of the previous response.")
		}

		filter.BeforeID = id
	}

	for {
		listed, err := c.Instances.List(ctx, filter)
		if err != nil || len(listed) == 0 {
			return "", err
		}

		visited, err := visit(listed)
		if err != nil {
			return "", err
		}

		last := listed[visited-1].Instance
		filter.Before, filter.BeforeID = last.CreatedAt, last.ID

		switch {
		case visited == len(listed) && visited < pageSize:
			return "", nil
		case page.Full():
			return last.CreatedAt.UTC().Format(time.RFC3339Nano) + " " + last.ID, nil
		}
	}
}

// instances searches for instances whose runtime the Provisioner does not know.
func (c *Comparer) instances(ctx context.Context, after string, page *operatorserver.ComparedPage) (string, error) {
	return c.eachInstance(ctx, after, page, func(listed []instances.Listed) (int, error) {
		candidates := map[string]bool{}

		var ids []string

		for _, each := range listed {
			if each.Instance.RuntimeID != "" && settled(each.Operation, page.Began) {
				candidates[each.Instance.ID] = true
				ids = append(ids, each.Instance.RuntimeID)
			}
		}

		existing, err := c.Provisioner.Existing(ctx, ids)
		if err != nil {
			return 0, err
		}

		for _, each := range listed {
			if !candidates[each.Instance.ID] || existing[each.Instance.RuntimeID] {
				continue
			}

			gone, err := c.stillWithout(ctx, each.Instance, page.Began)
			if err != nil {
				return 0, err
			}

			if gone {
				page.Add(withoutRuntime(each.Instance))
			}
		}

		return len(listed), nil
	})
}

// stillWithout reads the instance again, after the runtime was requested from the Provisioner. It reports whether the instance
// still refers to the runtime and has no newer operation.
func (c *Comparer) stillWithout(ctx context.Context, known environment.Instance, began time.Time) (bool, error) {
	listed, err := c.Instances.List(ctx, instances.Filter{InstanceID: known.ID, Limit: 1})
	if err != nil || len(listed) == 0 {
		return false, err
	}

	return listed[0].Instance.RuntimeID == known.RuntimeID && settled(listed[0].Operation, began), nil
}

// withoutRuntime describes an instance whose runtime is missing.
func withoutRuntime(instance environment.Instance) operatorapi.Difference {
	return operatorapi.Difference{
		Kind: operatorapi.DifferenceKindInstanceWithoutRuntime, ID: instance.ID, InstanceID: instance.ID, RuntimeID: instance.RuntimeID,
		ShootName: instance.ShootName, AccountID: instance.GlobalAccountID,
		Meaning: "The Provisioner does not know the runtime of the instance: the runtime was deleted, or its database record was lost.",
		Commands: []string{
			"ebctl provisioner reconcile # restores a lost record",
			operatorserver.Command("ebctl instance delete %s # if the cluster is gone", instance.ID),
		},
	}
}

// runtimes searches for runtimes that belong to no instance. It finds the instance of a runtime by the Shoot name, which is
// unique. Runtimes that cleanups of leftovers remove are not differences: the list of leftovers contains them.
func (c *Comparer) runtimes(ctx context.Context, cursor string, page *operatorserver.ComparedPage) (string, error) {
	for {
		list, err := c.Provisioner.Runtimes(ctx, cursor)
		if err != nil {
			return "", err
		}

		if err := c.addWithoutInstance(ctx, list.Data, page); err != nil {
			return "", err
		}

		if cursor = list.Cursor; cursor == "" || page.Full() {
			return cursor, nil
		}
	}
}

// addWithoutInstance adds the runtimes without an instance to the page.
func (c *Comparer) addWithoutInstance(ctx context.Context, runtimes []operatorapi.Runtime, page *operatorserver.ComparedPage) error {
	names := make([]string, 0, len(runtimes))
	for _, runtime := range runtimes {
		names = append(names, runtime.ShootName)
	}

	owners, err := c.owners(ctx, names)
	if err != nil {
		return err
	}

	// Read the leftovers after the instances: the transaction that removes an instance adds its leftover.
	left, err := c.Leftovers.OfShoots(ctx, c.DB.Reader(), names)
	if err != nil {
		return err
	}

	for _, runtime := range runtimes {
		owner, owned := owners[runtime.ShootName]
		if owned && agree(runtime, owner, page.Began) || !ended(runtime, page.Began) {
			continue
		}

		if leftover, is := leftoverOf(left, runtime.RuntimeID, runtime.ShootName); is && deprovisioning.RemovesRuntime(leftover.Steps) {
			continue
		}

		difference, err := c.withoutInstance(ctx, runtime, owner.Instance)
		if err != nil {
			return err
		}

		page.Add(difference)
	}

	return nil
}

// agree reports whether the instance has the runtime, or could get it from an operation that had not ended when the comparison
// began.
func agree(runtime operatorapi.Runtime, owner instances.Listed, began time.Time) bool {
	return owner.Instance.RuntimeID == runtime.RuntimeID || !settled(owner.Operation, began)
}

// leftoverOf returns the leftover whose runtime is the given one. If the ID of the runtime of a leftover never reached the broker,
// the Shoot name identifies it.
func leftoverOf(left []environment.Leftover, runtimeID, shootName string) (environment.Leftover, bool) {
	at := slices.IndexFunc(left, func(each environment.Leftover) bool {
		return each.Instance.RuntimeID == runtimeID || each.Instance.RuntimeID == "" && each.Instance.ShootName == shootName
	})
	if at < 0 {
		return environment.Leftover{}, false
	}

	return left[at], true
}

// checkLeftover returns an error of kind failure.Conflict if the instance is a leftover with the same runtime: it was deleted or
// suspended, so its row is not lost.
func (c *Comparer) checkLeftover(ctx context.Context, tx storage.Tx, instance environment.Instance) error {
	left, err := c.Leftovers.OfShoots(ctx, tx, []string{instance.ShootName})
	if err != nil {
		return err
	}

	if leftover, is := leftoverOf(left, instance.RuntimeID, instance.ShootName); is {
		return failure.New(failure.Conflict, "the runtime belongs to the leftover %s of instance %s: clean it up or confirm it, see 'ebctl instance list --leftovers'",
			leftover.ID, leftover.Instance.ID)
	}

	return nil
}

// ended reports whether the newest operation of a runtime had ended before the comparison began.
func ended(runtime operatorapi.Runtime, began time.Time) bool {
	last := runtime.Status.LastOperation

	return process.State(last.State).Terminal() && last.FinishedAt.Before(began)
}

// owners returns the instances with the given Shoot names, keyed by Shoot name.
func (c *Comparer) owners(ctx context.Context, names []string) (map[string]instances.Listed, error) {
	owners := map[string]instances.Listed{}
	if len(names) == 0 {
		return owners, nil
	}

	listed, err := c.Instances.List(ctx, instances.Filter{ShootNames: names, Limit: len(names)})
	for _, each := range listed {
		owners[each.Instance.ShootName] = each
	}

	return owners, err
}

// withoutInstance describes a runtime without an instance. other is the instance with the same Shoot name but a different
// runtime, or zero.
func (c *Comparer) withoutInstance(ctx context.Context, runtime operatorapi.Runtime, other environment.Instance) (operatorapi.Difference, error) {
	difference := operatorapi.Difference{
		Kind: operatorapi.DifferenceKindRuntimeWithoutInstance, ID: runtime.RuntimeID, RuntimeID: runtime.RuntimeID,
		ShootName: runtime.ShootName, AccountID: runtime.GlobalAccountID,
		Meaning:  "The Provisioner has a runtime that belongs to no instance of the broker. The cluster costs money, and no platform can change or delete it.",
		Commands: []string{operatorserver.Command("ebctl provisioner runtime get %s", runtime.RuntimeID)},
	}

	instance, err := c.lost(ctx, runtime.RuntimeID)
	if err == nil && other.ID != "" {
		err = failure.New(failure.Conflict, "instance %s has the same Shoot name, but a different runtime, %q", other.ID, other.RuntimeID)
	}

	difference.InstanceID, difference.Restorable = instance.ID, err == nil

	if err != nil {
		if failure.KindOf(err) == failure.Internal || failure.KindOf(err) == failure.Transient {
			return difference, err
		}

		difference.Reason = failure.Of(err).ForOperators()
		difference.Commands = append(difference.Commands, operatorserver.Command(
			`curl "$PROVISIONER_URL/graphql" --user "$CREDENTIALS" -H %s --json %s # only if nobody needs the cluster`,
			"Tenant: "+runtime.GlobalAccountID, fmt.Sprintf(`{"query": "mutation { deprovisionRuntime(id: \"%s\") }"}`, runtime.RuntimeID)))
	}

	return difference, nil
}

// lost decodes the lost instance of a runtime from its client data. If the instance cannot be restored, the error carries a
// failure.Kind and says why.
func (c *Comparer) lost(ctx context.Context, runtimeID string) (environment.Instance, error) {
	runtime, err := c.Provisioner.Runtime(ctx, runtimeID)
	if err != nil {
		return environment.Instance{}, err
	}

	instance, err := provisionerclient.ParseClientData(runtime.ClientData)
	if err != nil {
		return instance, err
	}

	exists, err := c.Instances.Exists(ctx, c.DB.Reader(), instance.ID)
	if err != nil {
		return instance, err
	}

	// Read the runtime again. The instance may have just been deleted, and a deletion removes the runtime before the row.
	if runtime, err = c.Provisioner.Runtime(ctx, runtimeID); err != nil {
		return instance, err
	}

	switch state := runtime.Status.State; {
	case state != operatorapi.RuntimeStateSucceeded && state != operatorapi.RuntimeStateSuspended:
		return instance, failure.New(failure.Conflict, "the state of the runtime is %s: wait until its operation has ended, or repair the runtime", state)
	case instance.ShootName != runtime.ShootName:
		return instance, failure.New(failure.Conflict, "the data of the runtime describes an instance with a different Shoot, %s", instance.ShootName)
	case exists:
		return instance, failure.New(failure.Conflict, "the instance %s exists and has another runtime", instance.ID)
	}

	instance.RuntimeID, instance.Suspended = runtime.RuntimeID, false

	return instance, c.checkLeftover(ctx, c.DB.Reader(), instance)
}

// provisioner adds the differences that the Provisioner finds to the page.
func (c *Comparer) provisioner(ctx context.Context, cursor string, page *operatorserver.ComparedPage) (string, error) {
	for {
		list, err := c.Provisioner.Differences(ctx, cursor, page.Left())
		if err != nil {
			return "", err
		}

		for _, difference := range list.Data {
			difference.Commands = append([]string{}, difference.Commands...)
			page.Add(difference)
		}

		for _, text := range list.Incomplete {
			page.Incomplete("%s", text)
		}

		if cursor = list.Cursor; cursor == "" || page.Full() {
			return cursor, nil
		}
	}
}
