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
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/crashtest"
	"github.com/environment-broker/environment-broker/process/orchestrating"
)

// operationName returns the name of the operation in a GraphQL request, which identifies the call in the crash matrix.
func operationName(request *http.Request) string {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return err.Error()
	}

	request.Body = io.NopCloser(bytes.NewReader(body))

	var call struct {
		OperationName string `json:"operationName"`
	}

	if err := json.Unmarshal(body, &call); err != nil {
		return err.Error()
	}

	return call.OperationName
}

// proxiedRows accesses the broker's tables through the proxy of a replica, which injects faults into reads and writes. Effects
// have no separate fault points, because the store applies them in Save.
type proxiedRows struct {
	service.Rows

	proxy *crashtest.Proxy
}

func (r proxiedRows) Find(ctx context.Context, id string) (environment.Instance, error) {
	return readRow(ctx, r, "Find", func(ctx context.Context) (environment.Instance, error) { return r.Rows.Find(ctx, id) })
}

func (r proxiedRows) LastProvisioning(ctx context.Context, id string) (environment.Data, error) {
	return readRow(ctx, r, "LastProvisioning", func(ctx context.Context) (environment.Data, error) { return r.Rows.LastProvisioning(ctx, id) })
}

func (r proxiedRows) SetRuntime(ctx context.Context, by process.Record, instance environment.Instance, runtimeID string) error {
	return r.call(ctx, "SetRuntime", func(ctx context.Context) error { return r.Rows.SetRuntime(ctx, by, instance, runtimeID) })
}

func (r proxiedRows) SetDashboardURL(ctx context.Context, by process.Record, instance environment.Instance, address string) error {
	return r.call(ctx, "SetDashboardURL", func(ctx context.Context) error { return r.Rows.SetDashboardURL(ctx, by, instance, address) })
}

func (r proxiedRows) WantsBinding(ctx context.Context, id string) (bool, error) {
	return readRow(ctx, r, "WantsBinding", func(ctx context.Context) (bool, error) { return r.Rows.WantsBinding(ctx, id) })
}

func (r proxiedRows) RuntimeEnding(ctx context.Context, id string) (bool, error) {
	return readRow(ctx, r, "RuntimeEnding", func(ctx context.Context) (bool, error) { return r.Rows.RuntimeEnding(ctx, id) })
}

func (r proxiedRows) RuntimeUser(ctx context.Context, former environment.Instance) (string, error) {
	return readRow(ctx, r, "RuntimeUser", func(ctx context.Context) (string, error) { return r.Rows.RuntimeUser(ctx, former) })
}

// proxiedOrchestrations calls the conductor of orchestrations through the proxy.
type proxiedOrchestrations struct {
	orchestrating.Orchestrations

	proxy *crashtest.Proxy
}

func (o proxiedOrchestrations) Plan(ctx context.Context, by process.Record) error {
	return proxiedRows{proxy: o.proxy}.call(ctx, "Plan", func(ctx context.Context) error { return o.Orchestrations.Plan(ctx, by) })
}

func (o proxiedOrchestrations) Advance(ctx context.Context, by process.Record) (progress orchestrating.Progress, err error) {
	err = proxiedRows{proxy: o.proxy}.call(ctx, "Advance", func(ctx context.Context) error {
		progress, err = o.Orchestrations.Advance(ctx, by)

		return err
	})

	return progress, err
}

// call makes a call through the proxy. It returns an injected fault as the error that the stores return when the database
// fails.
func (r proxiedRows) call(ctx context.Context, name string, call func(ctx context.Context) error) error {
	err := r.proxy.Call(ctx, name, call)
	if errors.Is(err, crashtest.ErrLost) {
		return failure.Wrap(failure.Transient, err, "the database does not respond correctly")
	}

	return err
}

// readRow is like proxiedRows.call, for a call that returns a value.
func readRow[T any](ctx context.Context, r proxiedRows, name string, call func(ctx context.Context) (T, error)) (value T, err error) {
	err = r.call(ctx, name, func(ctx context.Context) error {
		var err error

		value, err = call(ctx)

		return err
	})

	return value, err
}

// proxiedAccess gives a replica access to runtimes through its proxy. It fetches kubeconfigs from the Provisioner and simulates
// the API servers. All runtimes share one set of service accounts.
type proxiedAccess struct {
	provisioner *provisionerclient.Client
	proxy       *crashtest.Proxy
	accounts    *accounts
}

// accounts simulates the objects in the runtimes. existing contains the IDs of the bindings that have a ServiceAccount.
type accounts struct {
	mutex    sync.Mutex
	existing map[string]bool
	// clientSecret is the Service Manager client secret that a runtime last received.
	clientSecret string
	// services is the number of service instances in the runtime.
	services int
	// issued is the number of issued admin kubeconfigs.
	issued int
}

// setCredentials records the Service Manager credentials that a runtime has received.
func (a *accounts) setCredentials(credentials environment.ServiceManager) {
	a.mutex.Lock()
	defer a.mutex.Unlock()

	a.clientSecret = credentials.ClientSecret.Reveal().Reveal()
}

// set adds the account of a binding if exists is true, and removes the account otherwise.
func (a *accounts) set(id string, exists bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()

	if exists {
		a.existing[id] = true
	} else {
		delete(a.existing, id)
	}
}

// list returns the sorted IDs of the bindings that have an account.
func (a *accounts) list() []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()

	return slices.Sorted(maps.Keys(a.existing))
}

// Probe implements provisioning.RuntimeAccess.
func (a proxiedAccess) Probe(ctx context.Context, instance environment.Instance) error {
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

// AdminKubeconfig implements reconciling.Kubeconfigs and kymaresource.Access. The kubeconfig names a cluster, which the Reconciler requires.
func (a proxiedAccess) AdminKubeconfig(ctx context.Context, instance environment.Instance) (secret.String, error) {
	if _, err := a.provisioner.Kubeconfig(ctx, instance.GlobalAccountID, instance.RuntimeID); err != nil {
		return "", err
	}

	return a.accounts.issue(), nil
}

// ApplyServiceManager implements provisioning.RuntimeAccess.
func (a proxiedAccess) ApplyServiceManager(ctx context.Context, instance environment.Instance, credentials environment.ServiceManager) error {
	if _, err := a.provisioner.Kubeconfig(ctx, instance.GlobalAccountID, instance.RuntimeID); err != nil {
		return err
	}

	err := a.proxy.Call(ctx, "credentials", func(context.Context) error {
		a.accounts.setCredentials(credentials)

		return nil
	})
	if err != nil {
		return failure.Wrap(failure.Transient, err, "the runtime does not respond yet")
	}

	return nil
}

// RemoveServiceInstances implements deprovisioning.Runtimes. Each call removes one service instance.
func (a proxiedAccess) RemoveServiceInstances(ctx context.Context, instance environment.Instance, _ bool) (int, error) {
	if _, err := a.provisioner.Kubeconfig(ctx, instance.GlobalAccountID, instance.RuntimeID); err != nil {
		return 0, err
	}

	var left int

	err := a.proxy.Call(ctx, "services", func(context.Context) error {
		a.accounts.mutex.Lock()
		defer a.accounts.mutex.Unlock()

		a.accounts.services = max(0, a.accounts.services-1)
		left = a.accounts.services

		return nil
	})
	if err != nil {
		return 0, failure.Wrap(failure.Transient, err, "the runtime does not respond yet")
	}

	return left, nil
}

// Grant implements binding.Runtimes.
func (a proxiedAccess) Grant(ctx context.Context, instance environment.Instance, granted environment.Binding) (environment.Access, error) {
	if _, err := a.provisioner.Kubeconfig(ctx, instance.GlobalAccountID, instance.RuntimeID); err != nil {
		return environment.Access{}, err
	}

	var issued environment.Access

	err := a.account(ctx, "grant", func() {
		a.accounts.set(granted.ID, true)

		issued = environment.Access{Kubeconfig: "kubeconfig", Server: "https://api.example.com", ExpiresAt: time.Now().Add(granted.Lifetime)}
	})

	return issued, err
}

// Revoke implements binding.Runtimes.
func (a proxiedAccess) Revoke(ctx context.Context, instance environment.Instance, removed environment.Binding) error {
	if _, err := a.provisioner.Kubeconfig(ctx, instance.GlobalAccountID, instance.RuntimeID); err != nil {
		return err
	}

	return a.account(ctx, "revoke", func() { a.accounts.set(removed.ID, false) })
}

func (a proxiedAccess) account(ctx context.Context, name string, change func()) error {
	if err := a.proxy.Call(ctx, name, func(context.Context) error {
		change()

		return nil
	}); err != nil {
		return failure.Wrap(failure.Transient, err, "the runtime does not respond")
	}

	return nil
}
