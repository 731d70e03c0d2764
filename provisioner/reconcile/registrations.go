package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/environment-broker/environment-broker/internal/labels/tenancy"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// maxTenants is the maximum number of tenants that one page covers. Director can list only the runtimes of one tenant at a time.
const maxTenants = 50

// registrations compares the runtimes of each tenant with Director. It fails if Gardener does not respond: without the Shoots, it could not
// recognize the registrations of lost rows.
func (c *comparison) registrations(ctx context.Context, after string, page *operatorserver.ComparedPage) (string, error) {
	if _, err := c.list(ctx); err != nil {
		return "", err
	}

	for {
		tenants, err := c.tenants(ctx, after)
		if err != nil {
			return "", err
		}

		for _, tenant := range tenants {
			if err := c.tenant(ctx, tenant, page); err != nil {
				return "", err
			}

			if after = tenant; page.Full() {
				return after, nil
			}
		}

		if len(tenants) < maxTenants {
			return "", nil
		}
	}
}

// tenants returns the first maxTenants accounts that have runtimes or Shoots and sort after the given one.
func (c *comparison) tenants(ctx context.Context, after string) ([]string, error) {
	tenants, err := c.Runtimes.Tenants(ctx, after, maxTenants)
	if err != nil {
		return nil, err
	}

	for _, shoot := range c.owned {
		if shoot.Tenant > after {
			tenants = append(tenants, shoot.Tenant)
		}
	}

	slices.Sort(tenants)
	tenants = slices.Compact(tenants)

	return tenants[:min(len(tenants), maxTenants)], nil
}

// tenant compares the runtimes of one tenant with Director. It ignores registrations whose order is not settled yet.
func (c *comparison) tenant(ctx context.Context, tenant string, page *operatorserver.ComparedPage) error {
	registered, err := c.Director.List(ctx, tenant, registration.LabelOrder)
	if err != nil && !errors.Is(err, director.ErrTenantUnknown) {
		return err
	}

	ids := map[string]bool{}

	for part := range slices.Chunk(registered, batch) {
		for _, each := range part {
			ids[each.ID] = true
		}

		if err := c.unknown(ctx, tenant, part, page); err != nil {
			return err
		}
	}

	return c.unregistered(ctx, tenant, ids, page)
}

// unknown looks for registrations without a runtime.
func (c *comparison) unknown(ctx context.Context, tenant string, registered []director.Runtime, page *operatorserver.ComparedPage) error {
	ids, labels := make([]string, 0, len(registered)), make([]string, 0, len(registered))

	for _, each := range registered {
		label, _ := each.Labels[registration.LabelOrder].(string)
		ids, labels = append(ids, each.ID), append(labels, label)
	}

	unsettled, err := c.Runtimes.UnsettledLabels(ctx, tenant, labels)
	if err != nil {
		return err
	}

	known, err := c.Runtimes.Summaries(ctx, ids)
	if err != nil {
		return err
	}

	for i, each := range registered {
		runtime, has := known[each.ID]
		hasShoot := c.hasShoot(each.ID)

		if has && runtime.DeletedAt.IsZero() || has && !runtime.DeletedAt.Before(page.Began) || slices.Contains(unsettled, labels[i]) || !has && hasShoot {
			continue // a Shoot without a row is already reported as a difference
		}

		page.Add(operatorapi.Difference{
			Kind: operatorapi.DifferenceKindRegistrationWithoutRuntime, ID: each.ID, RuntimeID: each.ID, AccountID: tenant,
			Meaning: fmt.Sprintf("Director has the runtime %s, but neither this Provisioner nor Gardener does. "+
				"If several Provisioners share the Director, it may belong to another one.", each.Name),
			Reason: "there is no cluster to which the registration could belong",
			Commands: []string{operatorserver.Command(`curl "$DIRECTOR_URL" -H "Authorization: Bearer $TOKEN" -H %s --json %s`,
				"Tenant: "+tenant, fmt.Sprintf(`{"query": "mutation { unregisterRuntime(id: \"%s\") { id } }"}`, each.ID))},
		})
	}

	return nil
}

// unregistered looks for runtimes that should be registered but are missing in Director. registered contains the IDs of the
// runtimes in Director. unregistered skips runtimes without a Shoot, which are already reported as a difference.
func (c *comparison) unregistered(ctx context.Context, tenant string, registered map[string]bool, page *operatorserver.ComparedPage) error {
	filter := runtimes.Filter{Tenant: tenancy.Label(tenant), Limit: batch}

	for {
		listed, err := c.Runtimes.List(ctx, filter)
		if err != nil {
			return err
		}

		for _, each := range listed {
			filter.Before, filter.BeforeID = each.Runtime.CreatedAt, each.Runtime.ID

			if registered[each.Runtime.ID] || !c.hasShoot(each.Runtime.ID) || !settled(each.Operation, page.Began) ||
				operation.Deprovisions(each.Operation.Kind) {
				continue
			}

			wanted, err := c.registered(ctx, each.Runtime.ID)
			if err != nil {
				return err
			}

			if wanted {
				page.Add(withoutRegistration(each.Runtime))
			}
		}

		if len(listed) < batch {
			return nil
		}
	}
}

// hasShoot reports whether Gardener has the Shoot of the runtime.
func (c *comparison) hasShoot(runtimeID string) bool {
	return slices.ContainsFunc(c.owned, func(shoot gardener.Owned) bool { return shoot.RuntimeID == runtimeID })
}

// registered reports whether the runtime was registered, according to the data of its creations and of the reconnections of its
// agent. Other operations do not record whether the runtime is registered.
func (c *comparison) registered(ctx context.Context, runtimeID string) (bool, error) {
	past, err := c.Operations.OfInstance(ctx, c.DB.Reader(), runtimeID)
	if err != nil {
		return false, err
	}

	for _, record := range past {
		if !operation.Provisions(record.Kind) && record.Kind != operation.KindReconnectRuntime {
			continue
		}

		payload, err := c.Operations.Payload(ctx, c.DB.Reader(), record.ID)
		if err != nil {
			return false, err
		}

		var data operation.Data
		if err := json.Unmarshal(payload, &data); err != nil {
			return false, fmt.Errorf("reading the data of operation %s: %w", record.ID, err)
		}

		if data.Registered {
			return true, nil
		}
	}

	return false, nil
}

// withoutRegistration describes a runtime that Director does not have.
func withoutRegistration(runtime runtimes.Runtime) operatorapi.Difference {
	return operatorapi.Difference{
		Kind: operatorapi.DifferenceKindRuntimeWithoutRegistration, ID: runtime.ID, RuntimeID: runtime.ID, ShootName: runtime.ShootName,
		AccountID: runtime.Account(),
		Meaning:   "The runtime was registered in Director, but is missing from Director. Its agent cannot connect.",
		Reason: "Director assigns the IDs of runtimes, so the runtime cannot be registered again under the same ID: restore Director, or " +
			"create the instance again",
		Commands: []string{operatorserver.Command("ebctl provisioner runtime get %s", runtime.ID)},
	}
}
