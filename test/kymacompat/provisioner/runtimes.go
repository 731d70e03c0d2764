package provisioner

import (
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/ast"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Kinds of operations, as named in the schema.
const (
	provision   = "ProvisionNoInstall"
	upgrade     = "UpgradeShoot"
	hibernate   = "Hibernate"
	deprovision = "DeprovisionNoInstall"
)

// Runtime is the part of a runtime's state that tests inspect.
type Runtime struct {
	ID, Name, Tenant string
	// Config is the cluster configuration from the order, with the changes from its upgrades.
	Config map[string]any
	// Operations lists the kinds of the runtime's operations, including the one in progress, in the order in which they started.
	Operations []string
}

// runtime is a Runtime with internal state. It stays in the Provisioner after its removal, because operations refer to it.
type runtime struct {
	Runtime

	last    *operation
	deleted bool
}

// operation represents an operation that succeeds at the time in its ends field and is in progress until then. Its state is
// derived from the current time, so nothing runs in the background.
type operation struct {
	id, kind string
	runtime  *runtime
	ends     time.Time
}

// caller contains the headers that identify the caller of a request.
type caller struct{ tenant, subAccount string }

// Runtimes returns the runtimes that exist, in any order.
func (p *Provisioner) Runtimes() []Runtime {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	var existing []Runtime

	for _, runtime := range p.runtimes {
		if !runtime.gone() {
			existing = append(existing, runtime.Runtime)
		}
	}

	return existing
}

// gone reports whether the removal of the runtime has ended. The caller must hold the mutex.
func (r *runtime) gone() bool { return r.deleted && !r.last.running() }

func (o *operation) running() bool { return time.Now().Before(o.ends) }

// resolve executes a field of Mutation or Query and returns its value with all subfields; ServeHTTP then selects the requested
// ones. The ResponseLost fault has no effect here: ServeHTTP discards the response.
func (p *Provisioner) resolve(caller caller, field *ast.Field, variables map[string]any, fault Fault) (any, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	if field.Name == "__typename" {
		return field.ObjectDefinition.Name, nil
	}

	if caller.tenant == "" {
		return nil, badRequest("tenant header is empty")
	}

	if fault == TenantRejected {
		return nil, badRequest("the tenant is not entitled to runtimes")
	}

	arguments := field.ArgumentMap(variables)
	id, _ := arguments["id"].(string)
	config, _ := arguments["config"].(map[string]any)

	switch field.Name {
	case "provisionRuntime":
		return p.provision(caller, config)
	case "runtimeOperationStatus":
		known := p.operations[id]
		if known == nil {
			return nil, notFound("cannot find operation with ID %s", id)
		}

		return known.response(), checkTenant(caller, known.runtime)
	}

	known := p.runtimes[id]
	if known == nil {
		return nil, notFound("cannot find cluster with runtime ID %s", id)
	}

	if err := checkTenant(caller, known); err != nil {
		return nil, err
	}

	switch field.Name {
	case "runtimeStatus":
		return p.status(known), nil
	case "upgradeShoot":
		return p.upgrade(known, config)
	case "hibernateRuntime":
		return p.start(known, hibernate)
	case "deprovisionRuntime":
		removal, err := p.start(known, deprovision)
		if err != nil {
			return nil, err
		}

		known.deleted = true

		return removal["id"], nil
	default:
		return nil, badRequest("%s is not simulated", field.Name)
	}
}

// provision creates the cluster before it returns, like the Kyma Provisioner. A repeated order therefore fails because the name
// is taken, and the broker must find out whether its first order created the cluster.
func (p *Provisioner) provision(caller caller, config map[string]any) (any, error) {
	ordered, _ := config["clusterConfig"].(map[string]any)
	cluster, _ := ordered["gardenerConfig"].(map[string]any)
	name, _ := cluster["name"].(string)

	// Gardener rejects invalid labels of the Shoot.
	for _, label := range []string{caller.tenant, caller.subAccount} {
		if problems := validation.IsValidLabelValue(label); len(problems) > 0 {
			return nil, badRequest("Shoot is invalid: metadata.labels: Invalid value: %q: %s", label, problems[0])
		}
	}

	for _, other := range p.runtimes {
		if other.Name == name && !other.gone() {
			return nil, nameTaken(name)
		}
	}

	made := &runtime{Runtime: Runtime{ID: uuid.NewString(), Name: name, Tenant: caller.tenant, Config: cluster}}
	p.runtimes[made.ID] = made

	return p.start(made, provision)
}

// upgrade starts an upgrade and merges the given fields into the configuration of the cluster.
func (p *Provisioner) upgrade(runtime *runtime, config map[string]any) (any, error) {
	started, err := p.start(runtime, upgrade)
	if err != nil {
		return nil, err
	}

	changes, _ := config["gardenerConfig"].(map[string]any)
	for field, value := range changes {
		if value != nil {
			runtime.Config[field] = value
		}
	}

	return started, nil
}

// start starts an operation and returns it as a GraphQL OperationStatus. It returns an error while another operation of the runtime
// is in progress.
func (p *Provisioner) start(runtime *runtime, kind string) (map[string]any, error) {
	if runtime.last != nil && runtime.last.running() {
		return nil, badRequest("cannot start new operation for %s Runtime while previous one is in progress", runtime.ID)
	}

	started := &operation{id: uuid.NewString(), kind: kind, runtime: runtime, ends: time.Now().Add(p.takes)}
	runtime.last = started
	runtime.Operations = append(runtime.Operations, kind)
	p.operations[started.id] = started

	return started.response(), nil
}

// response returns the operation as a GraphQL OperationStatus. As in the Kyma Provisioner, an operation that has not failed has a
// lastError with empty fields.
func (o *operation) response() map[string]any {
	state, message := "Succeeded", "Operation succeeded"
	if o.running() {
		state, message = "InProgress", "Operation in progress. Stage WaitingForClusterCreation"
	}

	return map[string]any{
		"id": o.id, "operation": o.kind, "state": state, "message": message, "runtimeID": o.runtime.ID,
		"lastError": map[string]any{"errMessage": "", "reason": "", "component": ""},
	}
}

// status returns the status of a runtime. Unlike our Provisioner, the Kyma Provisioner creates a kubeconfig as soon as the
// cluster exists, even if the query does not select the kubeconfig.
func (p *Provisioner) status(runtime *runtime) map[string]any {
	config := maps.Clone(runtime.Config)
	config["providerSpecificConfig"] = specific(runtime.Config["providerSpecificConfig"])

	configuration := map[string]any{"clusterConfig": config}
	if runtime.last.kind != provision || !runtime.last.running() {
		configuration["kubeconfig"] = p.kubeconfig()
	}

	return map[string]any{
		"lastOperationStatus":     runtime.last.response(),
		"runtimeConnectionStatus": map[string]any{"status": "Pending"},
		"runtimeConfiguration":    configuration,
		"hibernationStatus":       map[string]any{"hibernated": false, "hibernationPossible": true},
	}
}

// specific converts the provider-specific part of an order into its output type. An order contains an object with one field per
// provider, of which only the field of the chosen provider is set. In a response, __typename identifies the provider. If an order
// has no provider-specific part, specific returns nil.
func specific(ordered any) any {
	parts, _ := ordered.(map[string]any)
	types := map[string]string{
		"gcpConfig": "GCPProviderConfig", "azureConfig": "AzureProviderConfig", "awsConfig": "AWSProviderConfig",
		"openStackConfig": "OpenStackProviderConfig",
	}

	for name, part := range parts {
		fields, isObject := part.(map[string]any)
		if !isObject {
			continue
		}

		fields["__typename"] = types[name]

		return fields
	}

	return nil
}
