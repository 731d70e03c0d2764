package provisioner

import (
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/ast"
)

// The kinds of operations, in the words of the schema.
const (
	provision   = "ProvisionNoInstall"
	upgrade     = "UpgradeShoot"
	hibernate   = "Hibernate"
	deprovision = "DeprovisionNoInstall"
)

// Runtime is what a runtime has become.
type Runtime struct {
	ID, Name, Tenant string
	// Config is the cluster as it was ordered, with what upgrades have changed.
	Config map[string]any
	// Operations are the kinds of its operations, in order.
	Operations []string
}

type runtime struct {
	Runtime

	last    *operation
	deleted bool
}

type operation struct {
	id, kind string
	runtime  *runtime
	ends     time.Time
}

type caller struct{ tenant, subAccount string }

// Runtimes are those that are there, and the clusters with them.
func (p *Provisioner) Runtimes() []Runtime {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	var there []Runtime

	for _, runtime := range p.runtimes {
		if !runtime.gone() {
			there = append(there, runtime.Runtime)
		}
	}

	return there
}

// gone is true once the removal has ended.
func (r *runtime) gone() bool { return r.deleted && !r.last.running() }

func (o *operation) running() bool { return time.Now().Before(o.ends) }

// resolve does what the field asks for.
func (p *Provisioner) resolve(caller caller, field *ast.Field, variables map[string]any, fault Fault) (any, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	if field.Name == "__typename" {
		return field.ObjectDefinition.Name, nil
	}

	if caller.tenant == "" {
		return nil, badRequest("tenant header is empty")
	}

	if fault == TenantRefused {
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

		return known.told(), mine(caller, known.runtime)
	}

	known := p.runtimes[id]
	if known == nil {
		return nil, notFound("cannot find cluster with runtime ID %s", id)
	}

	if err := mine(caller, known); err != nil {
		return nil, err
	}

	switch field.Name {
	case "runtimeStatus":
		return p.status(known), nil
	case "upgradeShoot":
		return p.upgrade(known, config)
	case "hibernateRuntime":
		return p.begin(known, hibernate)
	case "deprovisionRuntime":
		removal, err := p.begin(known, deprovision)
		if err != nil {
			return nil, err
		}

		known.deleted = true

		return removal["id"], nil
	default:
		return nil, badRequest("%s is not played", field.Name)
	}
}

// provision makes the cluster at once: the Kyma Provisioner did so before it answered.
func (p *Provisioner) provision(caller caller, config map[string]any) (any, error) {
	ordered, _ := config["clusterConfig"].(map[string]any)
	cluster, _ := ordered["gardenerConfig"].(map[string]any)
	name, _ := cluster["name"].(string)

	for _, other := range p.runtimes {
		if other.Name == name && !other.gone() {
			return nil, taken(name)
		}
	}

	made := &runtime{Runtime: Runtime{ID: uuid.NewString(), Name: name, Tenant: caller.tenant, Config: cluster}}
	p.runtimes[made.ID] = made

	return p.begin(made, provision)
}

func (p *Provisioner) upgrade(runtime *runtime, config map[string]any) (any, error) {
	begun, err := p.begin(runtime, upgrade)
	if err != nil {
		return nil, err
	}

	changes, _ := config["gardenerConfig"].(map[string]any)
	for field, value := range changes {
		if value != nil {
			runtime.Config[field] = value
		}
	}

	return begun, nil
}

// begin starts an operation, one after the other.
func (p *Provisioner) begin(runtime *runtime, kind string) (map[string]any, error) {
	if runtime.last != nil && runtime.last.running() {
		return nil, badRequest("cannot start new operation for %s Runtime while previous one is in progress", runtime.ID)
	}

	begun := &operation{id: uuid.NewString(), kind: kind, runtime: runtime, ends: time.Now().Add(p.takes)}
	runtime.last = begun
	runtime.Operations = append(runtime.Operations, kind)
	p.operations[begun.id] = begun

	return begun.told(), nil
}

func (o *operation) told() map[string]any {
	state, message := "Succeeded", "Operation succeeded"
	if o.running() {
		state, message = "InProgress", "Operation in progress. Stage WaitingForClusterCreation"
	}

	return map[string]any{
		"id": o.id, "operation": o.kind, "state": state, "message": message, "runtimeID": o.runtime.ID,
		"lastError": map[string]any{"errMessage": "", "reason": "", "component": ""},
	}
}

// status returns the status of a runtime. Unlike ours, the Kyma Provisioner has a kubeconfig as soon as the cluster is there, and makes
// one whether it is selected or not.
func (p *Provisioner) status(runtime *runtime) map[string]any {
	config := maps.Clone(runtime.Config)
	config["providerSpecificConfig"] = specific(runtime.Config["providerSpecificConfig"])

	configuration := map[string]any{"clusterConfig": config}
	if runtime.last.kind != provision || !runtime.last.running() {
		configuration["kubeconfig"] = p.kubeconfig()
	}

	return map[string]any{
		"lastOperationStatus":     runtime.last.told(),
		"runtimeConnectionStatus": map[string]any{"status": "Pending"},
		"runtimeConfiguration":    configuration,
		"hibernationStatus":       map[string]any{"hibernated": false, "hibernationPossible": true},
	}
}

// specific is the part of an order for its provider, as it is read.
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
