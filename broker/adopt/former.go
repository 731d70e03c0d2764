package adopt

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/storage/takeover"
)

// KEB describes Kyma Environment Broker for package takeover.
func KEB() takeover.Program {
	const open = `('in progress', 'pending', 'retrying', 'canceling')`

	return takeover.Program{
		Name: "Kyma Environment Broker", Version: 202210121025,
		Unfinished: `SELECT format('operation %s (%s) of instance %s', id, type, instance_id) FROM operations WHERE state IN ` + open + `
			UNION ALL SELECT format('orchestration %s (%s)', orchestration_id, type) FROM orchestrations WHERE state IN ` + open,
	}
}

// formerInstance is a row in the instances table of Kyma Environment Broker.
type formerInstance struct {
	ID                  string         `db:"instance_id"`
	RuntimeID           string         `db:"runtime_id"`
	Account             string         `db:"global_account_id"`
	SubscriptionAccount sql.NullString `db:"subscription_global_account_id"`
	SubAccount          sql.NullString `db:"sub_account_id"`
	ServiceID           string         `db:"service_id"`
	PlanID              string         `db:"service_plan_id"`
	DashboardURL        string         `db:"dashboard_url"`
	Parameters          string         `db:"provisioning_parameters"`
	Region              sql.NullString `db:"provider_region"`
	Provider            sql.NullString `db:"provider"`
	CreatedAt           time.Time      `db:"created_at"`
	UpdatedAt           time.Time      `db:"updated_at"`
	DeletedAt           time.Time      `db:"deleted_at"`
	ExpiredAt           sql.NullTime   `db:"expired_at"`

	// operations are those that readPage selects, oldest first.
	operations []formerOperation
}

// formerOperation is a row in the operations table of Kyma Environment Broker.
type formerOperation struct {
	ID          string `db:"id"`
	InstanceID  string `db:"instance_id"`
	Type        string `db:"type"`
	State       string `db:"state"`
	Description string `db:"description"`
	TargetID    string `db:"target_operation_id"`
	ShootName   string `db:"shoot_name"`
	Temporary   bool   `db:"temporary"`
	Secret      string `db:"target_secret"`
	// The following fields describe the objects in other systems at the time of the operation. The evaluations are numeric IDs in
	// the availability service (AvS). If there is no evaluation, its ID is 0 or empty.
	InternalEvaluation string    `db:"internal_evaluation"`
	ExternalEvaluation string    `db:"external_evaluation"`
	EDP                bool      `db:"edp"`
	Reconciler         bool      `db:"reconciler"`
	CreatedAt          time.Time `db:"created_at"`
	UpdatedAt          time.Time `db:"updated_at"`
}

// readPage returns the next page of instances after the given ID, with their operations.
func readPage(ctx context.Context, former *takeover.Database, after string) ([]formerInstance, error) {
	instances, err := takeover.Select[formerInstance](ctx, former, `SELECT instance_id, runtime_id, global_account_id, subscription_global_account_id,
		sub_account_id, service_id, service_plan_id, dashboard_url, provisioning_parameters, provider_region, provider, created_at, updated_at,
		deleted_at, expired_at FROM instances WHERE instance_id > ? ORDER BY instance_id LIMIT ?`, after, takeover.Page)
	if err != nil || len(instances) == 0 {
		return instances, err
	}

	ids := make([]string, len(instances))
	for i := range instances {
		ids[i] = instances[i].ID
	}

	// The first operation of an instance created it. Of the later operations, only the newest of each type matters. A later
	// provision is a resumption, and a temporary deprovision is a suspension.
	operations, err := takeover.Select[formerOperation](ctx, former, `SELECT id, instance_id, type, state, description, target_operation_id,
			COALESCE(data::jsonb ->> 'shoot_name', '') AS shoot_name, COALESCE((data::jsonb ->> 'temporary')::boolean, false) AS temporary,
			COALESCE(provisioning_parameters::jsonb #>> '{parameters,targetSecret}', '') AS target_secret, created_at, updated_at,
			CASE WHEN (data::jsonb #>> '{avs,avs_internal_evaluation_deleted}')::boolean THEN ''
				ELSE COALESCE(data::jsonb #>> '{avs,avs_evaluation_internal_id}', '') END AS internal_evaluation,
			CASE WHEN (data::jsonb #>> '{avs,avs_external_evaluation_deleted}')::boolean THEN ''
				ELSE COALESCE(data::jsonb #>> '{avs,avs_evaluation_external_id}', '') END AS external_evaluation,
			COALESCE((data::jsonb ->> 'edp_created')::boolean, false) AS edp,
			COALESCE(data::jsonb ->> 'cluster_configuration_version', '0') <> '0' AS reconciler
		FROM (SELECT *, row_number() OVER (PARTITION BY instance_id, type ORDER BY created_at DESC) AS from_newest,
				row_number() OVER (PARTITION BY instance_id, type ORDER BY created_at) AS from_oldest
			FROM operations WHERE instance_id IN (?)) AS ranked
		WHERE from_newest = 1 OR from_oldest = 1 AND type = 'provision' ORDER BY instance_id, created_at`, ids)
	if err != nil {
		return nil, err
	}

	for i := range instances {
		for _, operation := range operations {
			if operation.InstanceID == instances[i].ID {
				instances[i].operations = append(instances[i].operations, operation)
			}
		}
	}

	return instances, nil
}

// newest returns the newest operation of the given type, or nil.
func (i formerInstance) newest(operationType string) *formerOperation {
	for _, operation := range slices.Backward(i.operations) {
		if operation.Type == operationType {
			return &operation
		}
	}

	return nil
}

// samples returns encrypted values from KEB's database, for checking the key. It omits kubeconfigs in plain text, which old rows
// contain (isKubeconfig).
func samples(ctx context.Context, former *takeover.Database) ([]string, error) {
	return takeover.Select[string](ctx, former, `SELECT value FROM (
			(SELECT provisioning_parameters::jsonb #>> '{ers_context,sm_operator_credentials,clientid}' AS value FROM instances
				WHERE provisioning_parameters::jsonb #>> '{ers_context,sm_operator_credentials,clientid}' <> '' LIMIT 1)
			UNION ALL
			(SELECT provisioning_parameters::jsonb #>> '{parameters,kubeconfig}' FROM instances
				WHERE provisioning_parameters::jsonb #>> '{parameters,kubeconfig}' <> ''
					AND provisioning_parameters::jsonb #>> '{parameters,kubeconfig}' NOT LIKE '%apiVersion%' LIMIT 1)) AS samples`)
}
