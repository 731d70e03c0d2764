package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/crashtest"
)

// operationName returns the operation of a GraphQL request.
func operationName(request *http.Request) string {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return err.Error()
	}

	request.Body = io.NopCloser(bytes.NewReader(body))

	var asked struct {
		OperationName string `json:"operationName"`
	}

	if err := json.Unmarshal(body, &asked); err != nil {
		return err.Error()
	}

	return asked.OperationName
}

// rows are the broker's tables behind a replica's proxy. Faults hit reads and writes.
type rows struct {
	service.Rows

	proxy *crashtest.Proxy
}

func (r rows) Find(ctx context.Context, id string) (environment.Instance, error) {
	var found environment.Instance

	err := r.call(ctx, "Find", func(ctx context.Context) error {
		var err error

		found, err = r.Rows.Find(ctx, id)

		return err
	})

	return found, err
}

func (r rows) LastProvisioning(ctx context.Context, id string) (environment.Data, error) {
	var found environment.Data

	err := r.call(ctx, "LastProvisioning", func(ctx context.Context) error {
		var err error

		found, err = r.Rows.LastProvisioning(ctx, id)

		return err
	})

	return found, err
}

func (r rows) SetRuntime(ctx context.Context, by process.Record, instance environment.Instance, runtimeID string) error {
	return r.call(ctx, "SetRuntime", func(ctx context.Context) error { return r.Rows.SetRuntime(ctx, by, instance, runtimeID) })
}

func (r rows) Update(ctx context.Context, by process.Record, instance environment.Instance, change environment.Update) error {
	return r.call(ctx, "Update", func(ctx context.Context) error { return r.Rows.Update(ctx, by, instance, change) })
}

func (r rows) Suspend(ctx context.Context, by process.Record, instance environment.Instance, change *environment.Update) error {
	return r.call(ctx, "Suspend", func(ctx context.Context) error { return r.Rows.Suspend(ctx, by, instance, change) })
}

func (r rows) Resume(ctx context.Context, by process.Record, instance environment.Instance) error {
	return r.call(ctx, "Resume", func(ctx context.Context) error { return r.Rows.Resume(ctx, by, instance) })
}

func (r rows) Delete(ctx context.Context, by process.Record, instance environment.Instance) error {
	return r.call(ctx, "Delete", func(ctx context.Context) error { return r.Rows.Delete(ctx, by, instance) })
}

func (r rows) WantsBinding(ctx context.Context, id string) (bool, error) {
	var wanted bool

	err := r.call(ctx, "WantsBinding", func(ctx context.Context) error {
		var err error

		wanted, err = r.Rows.WantsBinding(ctx, id)

		return err
	})

	return wanted, err
}

func (r rows) SaveAccess(ctx context.Context, id string, access environment.Access) (bool, error) {
	var kept bool

	err := r.call(ctx, "SaveAccess", func(ctx context.Context) error {
		var err error

		kept, err = r.Rows.SaveAccess(ctx, id, access)

		return err
	})

	return kept, err
}

func (r rows) RemoveBinding(ctx context.Context, id string) error {
	return r.call(ctx, "RemoveBinding", func(ctx context.Context) error { return r.Rows.RemoveBinding(ctx, id) })
}

// call makes a call through the proxy, and reports faults like the stores.
func (r rows) call(ctx context.Context, name string, call func(ctx context.Context) error) error {
	err := r.proxy.Call(ctx, name, call)
	if errors.Is(err, crashtest.ErrLost) {
		return failure.Wrap(failure.Transient, err, "the database does not respond correctly")
	}

	return err
}

// access fetches kubeconfigs of runtimes from the Provisioner, and simulates the runtimes' API servers, which share one set of accounts.
type access struct {
	provisioner *provisionerclient.Client
	proxy       *crashtest.Proxy
	accounts    *accounts
}

// accounts are the accounts in the runtimes, by binding ID.
type accounts struct {
	mutex sync.Mutex
	there map[string]bool
}

// set adds an account if there is true, and removes it otherwise.
func (a *accounts) set(id string, there bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()

	if there {
		a.there[id] = true
	} else {
		delete(a.there, id)
	}
}

// list returns the sorted accounts.
func (a *accounts) list() []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()

	return slices.Sorted(maps.Keys(a.there))
}

// Probe implements provisioning.RuntimeAccess.
func (a access) Probe(ctx context.Context, instance environment.Instance) error {
	if instance.Request.Cluster.Own == nil {
		if _, err := a.provisioner.Kubeconfig(ctx, instance.GlobalAccountID, instance.RuntimeID); err != nil {
			return err
		}
	}

	if err := a.proxy.Call(ctx, "version", func(context.Context) error { return nil }); err != nil {
		return failure.Wrap(failure.Transient, err, "the runtime does not respond yet")
	}

	return nil
}

// Grant implements binding.Runtimes.
func (a access) Grant(ctx context.Context, instance environment.Instance, made environment.Binding) (environment.Access, error) {
	if _, err := a.provisioner.Kubeconfig(ctx, instance.GlobalAccountID, instance.RuntimeID); err != nil {
		return environment.Access{}, err
	}

	var issued environment.Access

	err := a.account(ctx, "grant", func() {
		a.accounts.set(made.ID, true)

		issued = environment.Access{Kubeconfig: "kubeconfig", Server: "https://api.example.com", ExpiresAt: time.Now().Add(made.Lifetime)}
	})

	return issued, err
}

// Revoke implements binding.Runtimes.
func (a access) Revoke(ctx context.Context, instance environment.Instance, removed environment.Binding) error {
	if _, err := a.provisioner.Kubeconfig(ctx, instance.GlobalAccountID, instance.RuntimeID); err != nil {
		return err
	}

	return a.account(ctx, "revoke", func() { a.accounts.set(removed.ID, false) })
}

func (a access) account(ctx context.Context, name string, change func()) error {
	if err := a.proxy.Call(ctx, name, func(context.Context) error {
		change()

		return nil
	}); err != nil {
		return failure.Wrap(failure.Transient, err, "the runtime does not respond")
	}

	return nil
}
