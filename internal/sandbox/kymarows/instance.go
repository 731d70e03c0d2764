package kymarows

import (
	_ "embed"
	"encoding/json"
	"maps"
	"testing"
	"time"
)

//go:embed keb.sql
var kebSchema string

// IDs in KEB's catalog, which this project's catalog also uses.
const (
	ServiceID      = "47c9dcbf-ff30-448e-ab36-d3bad66ba281"
	PlanAWS        = "361c511f-f939-4621-b228-d0fb79a1fe15"
	PlanAzure      = "4deee563-e5ec-4731-b9b1-53b42d855f0c"
	PlanGCP        = "ca6e5357-707f-4565-bbbd-b3ab732597c6"
	PlanOpenStack  = "03b812ac-c991-4528-b5bd-08b303523a63"
	PlanTrial      = "7d55d31d-35ae-4438-bf13-6ffdfa107d9f"
	PlanOwnCluster = "03e3cb66-a4c6-4c6a-b4b0-5d42224debea"
	stateSucceeded = "succeeded"
)

// KEB returns an empty database of Kyma Environment Broker.
func KEB(tb testing.TB) Database {
	tb.Helper()

	return newDatabase(tb, kebSchema)
}

// Instance is a service instance of KEB.
type Instance struct {
	ID string
	// Cluster is the instance's cluster in Kyma Provisioner.
	Cluster Cluster
	PlanID  string
	// Parameters are the parameters that the platform sent.
	Parameters map[string]any
	// Suspended means that KEB has removed the cluster. The instance's row then has an empty runtime ID.
	Suspended bool
	// ProvisionID, UpdateID and SuspendID are the IDs of the instance's operations. If UpdateID is empty, the instance has no update
	// operation. SuspendID is used only if Suspended is true.
	ProvisionID, UpdateID, SuspendID string
	// ProvisionState is the state of the provision operation.
	ProvisionState string
	// Secret is the password for Service Manager.
	Secret string
}

// Context returns the context that the platform sent, without the credentials for Service Manager.
func (i Instance) Context() map[string]any {
	return map[string]any{
		"tenant_id": i.Cluster.SubAccount, "subaccount_id": i.Cluster.SubAccount, "globalaccount_id": i.Cluster.Tenant, "user_id": i.Cluster.Administrators[0],
		"platform": "cloudfoundry",
	}
}

// ExampleInstance returns the instance of a cluster. The same cluster always returns the same instance.
func ExampleInstance(cluster Cluster) Instance {
	found := Instance{
		ID: idOf("instance", cluster.Name), Cluster: cluster,
		ProvisionID: idOf("provision", cluster.Name), UpdateID: idOf("update", cluster.Name), SuspendID: idOf("suspension", cluster.Name),
		ProvisionState: stateSucceeded, Secret: "the password of " + cluster.Name,
		PlanID:     map[string]string{"aws": PlanAWS, "azure": PlanAzure, "gcp": PlanGCP, "openstack": PlanOpenStack}[cluster.Provider],
		Parameters: map[string]any{"name": "runtime-" + cluster.Name, "region": cluster.Region, "administrators": cluster.Administrators},
	}

	return found
}

// InsertInstance inserts the instance's rows.
func (d Database) InsertInstance(i Instance) {
	d.Helper()

	parameters := d.provisioningParameters(i)
	created := i.Cluster.CreatedAt
	runtimeID := i.Cluster.ID

	if i.Suspended {
		runtimeID = ""
	}

	provider := map[string]string{"aws": "AWS", "azure": "Azure", "gcp": "GCP", "openstack": "OpenStack"}[i.Cluster.Provider]
	statements := []statement{
		row("instances", column{"instance_id", i.ID}, column{"runtime_id", runtimeID}, column{"global_account_id", i.Cluster.Tenant},
			column{"service_id", ServiceID}, column{"service_plan_id", i.PlanID}, column{"dashboard_url", "https://console.example.com/?kubeconfigID=" + i.ID},
			column{"provisioning_parameters", parameters}, column{"created_at", created}, column{"updated_at", created.Add(time.Hour)},
			column{"sub_account_id", i.Cluster.SubAccount}, column{"service_name", "kymaruntime"}, column{"service_plan_name", i.Cluster.Provider},
			column{"provider_region", i.Cluster.Region}, column{"provider", provider}),
		i.operation(i.ProvisionID, "provision", i.ProvisionState, i.Cluster.CreationID, parameters, created, nil),
	}

	if i.UpdateID != "" {
		statements = append(statements, i.operation(i.UpdateID, "update", stateSucceeded, i.Cluster.ChangeID, parameters,
			created.Add(time.Hour), map[string]any{
				"updating_parameters": map[string]any{"autoScalerMax": i.Cluster.Maximum},
			}))
	}

	if i.Suspended {
		statements = append(statements, i.operation(i.SuspendID, "deprovision", stateSucceeded, "", parameters, created.Add(2*time.Hour),
			map[string]any{"temporary": true}))
	}

	d.run(statements...)
}

// provisioningParameters returns the content of the provisioning_parameters columns: JSON with encrypted credentials, and with
// null for fields that the platform did not send.
func (d Database) provisioningParameters(i Instance) string {
	d.Helper()

	context := i.Context()
	context["active"], context["license_type"] = nil, nil
	context["sm_operator_credentials"] = map[string]any{
		"clientid": Encrypt(d, "client of "+i.Cluster.Name), "clientsecret": Encrypt(d, i.Secret), "sm_url": "https://service-manager.example.com",
		"url": "https://tokens.example.com", "xsappname": "app",
	}

	parameters := map[string]any{"targetSecret": i.Cluster.Binding, "licence_type": "CUSTOMER", "zones": nil, "oidc": nil}
	maps.Copy(parameters, i.Parameters)

	encoded, err := json.Marshal(map[string]any{
		"plan_id": i.PlanID, "service_id": ServiceID, "ers_context": context, "parameters": parameters, "platform_region": "cf-eu10",
		"platform_provider": "AWS",
	})
	if err != nil {
		d.Fatal(err)
	}

	return string(encoded)
}

// operation returns an INSERT statement for an operation that took half an hour. more contains additional fields for the data
// column.
func (i Instance) operation(id, kind, state, targetID, parameters string, began time.Time, more map[string]any) statement {
	data := map[string]any{
		"shoot_name": i.Cluster.Name, "shoot_domain": i.Cluster.Domain(), "sub_account_id": i.Cluster.SubAccount, "runtime_id": i.Cluster.ID,
		"avs": map[string]any{"avs_evaluation_internal_id": 4711}, "edp_created": true, "excutedButNotCompleted": nil, "userAgent": "",
	}
	maps.Copy(data, more)

	encoded, err := json.Marshal(data)
	if err != nil {
		panic(err) // not reached: the value consists of strings and numbers
	}

	return row("operations", column{"id", id}, column{"instance_id", i.ID}, column{"target_operation_id", targetID}, column{"version", 7},
		column{"state", state}, column{"description", "Processing finished"}, column{"type", kind}, column{"data", string(encoded)},
		column{"created_at", began}, column{"updated_at", began.Add(30 * time.Minute)}, column{"orchestration_id", nil},
		column{"provisioning_parameters", parameters}, column{"finished_stages", "start,create_runtime"})
}
