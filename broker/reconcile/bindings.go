package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// bindings searches the runtimes, one after another, for ServiceAccounts of unknown bindings. A runtime that does not respond makes
// the comparison incomplete.
func (c *Comparer) bindings(ctx context.Context, after string, page *operatorserver.ComparedPage) (string, error) {
	return c.eachInstance(ctx, after, page, func(listed []instances.Listed) (int, error) {
		for i, each := range listed {
			if each.Instance.RuntimeID == "" || !settled(each.Operation, page.Began) {
				continue
			}

			if err := c.bindingsOf(ctx, each.Instance, page); err != nil {
				return 0, err
			}

			if page.Full() {
				return i + 1, nil
			}
		}

		return len(listed), nil
	})
}

// bindingsOf reports the ServiceAccounts in one runtime that belong to no known binding. It compares twice and reports only the
// ServiceAccounts that are unknown both times: a ServiceAccount that disappears in between belongs to an unbind in progress. A
// bind in progress causes no false finding, because the row of a binding is written before its ServiceAccount.
func (c *Comparer) bindingsOf(ctx context.Context, instance environment.Instance, page *operatorserver.ComparedPage) error {
	unknown, err := c.unknown(ctx, instance)
	if err == nil && len(unknown) > 0 {
		var again []string

		again, err = c.unknown(ctx, instance)
		unknown = slices.DeleteFunc(unknown, func(account string) bool { return !slices.Contains(again, account) })
	}

	if err != nil {
		if failure.KindOf(err) == failure.Internal || ctx.Err() != nil {
			return err
		}

		c.Log.WithError(err).WithField(logging.InstanceID, instance.ID).Info("looking for unknown bindings failed")
		page.Incomplete("runtime %s of instance %s: %s", instance.RuntimeID, instance.ID, failure.Of(err).ForOperators())

		return nil
	}

	for _, account := range unknown {
		page.Add(operatorapi.Difference{
			Kind: operatorapi.DifferenceKindUnknownBinding, ID: account, InstanceID: instance.ID, RuntimeID: instance.RuntimeID,
			ShootName: instance.ShootName, AccountID: instance.GlobalAccountID,
			Meaning: fmt.Sprintf("The runtime has the ServiceAccount %s of a binding that the broker does not know. Its tokens work until they expire, and no unbind request removes the account.", account),
			Reason:  "the broker does not keep the credentials of lost bindings: create the binding again",
			Commands: []string{
				operatorserver.Command("ebctl instance kubeconfig %s > admin.yaml", instance.ID),
				operatorserver.Command("kubectl --kubeconfig admin.yaml delete clusterrolebinding %s", account),
				operatorserver.Command("kubectl --kubeconfig admin.yaml --namespace kube-system delete serviceaccount %s", account),
			},
		})
	}

	return nil
}

// unknown returns the ServiceAccounts in the instance's runtime that were created for bindings but belong to no known binding. It reads
// the ServiceAccounts before the rows.
func (c *Comparer) unknown(ctx context.Context, instance environment.Instance) ([]string, error) {
	accounts, err := c.Accounts.Accounts(ctx, instance)
	if err != nil {
		return nil, err
	}

	known, err := c.Bindings.OfInstance(ctx, instance.ID)

	return slices.DeleteFunc(accounts, func(account string) bool {
		return slices.ContainsFunc(known, func(binding environment.Binding) bool { return binding.Account() == account })
	}), err
}
