package kymarows

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Project is the name of the example clusters' Gardener project.
const Project = "dev"

// Cluster is a cluster of Kyma Provisioner. Its fields correspond to columns of the Kyma Provisioner tables. Example returns a
// cluster with realistic values.
type Cluster struct {
	ID, Tenant, SubAccount string
	Name, Provider, Region string
	// Binding is the name of the SecretBinding, and of the CredentialsBinding that replaces it.
	Binding string
	// ProviderConfig is the content of the provider_specific_config column.
	ProviderConfig map[string]any
	MachineType    string
	// WorkerCIDR is the address range of the machines. Nodes is the range in the Shoot, which may be larger.
	WorkerCIDR, Nodes string
	Zones             []string
	Minimum, Maximum  int32
	Purpose           string
	Administrators    []string
	// OIDC means that the cluster has an identity provider. EUAccess means that access to the cluster is restricted to the EU.
	// DNSSecret is the name of a Secret in the project; if it is empty, Gardener chooses the domain.
	OIDC, EUAccess bool
	DNSSecret      string
	// Zone is the parent domain of a cluster that has a DNSSecret.
	Zone      string
	CreatedAt time.Time
	// CreationID is the ID of the operation that created the cluster. The other fields describe a later operation; if ChangeType is
	// empty, there is none.
	CreationID, ChangeID, ChangeType, ChangeState string
	// CreationState is the state of the creation operation.
	CreationState string
}

// DNSSecret is the name of the Secret with the DNS credentials, in the examples that have a domain.
const DNSSecret = "former-route53"

// Domain returns the domain of a cluster that has a DNSSecret.
func (c Cluster) Domain() string { return c.Name + "." + c.Zone }

// Example returns the example cluster with the given number, starting at 0. Providers and optional fields alternate. The same
// number always returns the same cluster.
func Example(number int) Cluster {
	created := time.Date(2023, 3, 1, 8, 0, 0, 0, time.UTC).Add(time.Duration(number) * time.Hour)
	found := Cluster{
		ID: idOf("cluster", number), Tenant: fmt.Sprintf("ga-%d", number/3), SubAccount: fmt.Sprintf("sa-%d", number),
		Name: fmt.Sprintf("c%06d", number), Minimum: 3, Maximum: 20, Purpose: "production", WorkerCIDR: "10.250.0.0/16", Nodes: "10.250.0.0/16",
		Administrators: []string{fmt.Sprintf("admin-%d@example.com", number), "operator@example.com"}, OIDC: number%2 == 0, CreatedAt: created,
		Zone:       "kyma.example.com",
		CreationID: idOf("creation", number), ChangeID: idOf("change", number), CreationState: "SUCCEEDED", ChangeState: "SUCCEEDED",
	}

	if number%5 == 0 {
		found.DNSSecret = DNSSecret
	}

	if number%3 != 0 {
		found.ChangeType = "UPGRADE_SHOOT"
	}

	switch number % 4 {
	case 0:
		found.aws()
	case 1:
		found.azure()
	case 2:
		found.gcp()
	case 3:
		found.openstack()
	}

	return found
}

// idOf returns an ID that depends only on the kind of object and on cluster, which is the number or the name of the object's
// cluster.
func idOf(kind string, cluster any) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s %v", kind, cluster)).String()
}

func (c *Cluster) aws() {
	c.Provider, c.Region, c.Binding, c.MachineType = "aws", "eu-central-1", "former-aws", "m6i.large"
	c.EUAccess = true
	c.Zones = []string{"eu-central-1a", "eu-central-1b", "eu-central-1c"}

	var zones []any

	for i, zone := range c.Zones {
		zones = append(zones, map[string]any{
			"name": zone, "workerCidr": fmt.Sprintf("10.250.%d.0/19", 64*i), "publicCidr": fmt.Sprintf("10.250.%d.0/20", 64*i+32),
			"internalCidr": fmt.Sprintf("10.250.%d.0/20", 64*i+48),
		})
	}

	c.ProviderConfig = map[string]any{"vpcCidr": "10.250.0.0/16", "awsZones": zones}
}

func (c *Cluster) azure() {
	c.Provider, c.Region, c.Binding, c.MachineType = "azure", "westeurope", "former-azure", "Standard_D4_v3"
	c.Zones = []string{"1", "2", "3"}
	c.ProviderConfig = map[string]any{"vnetCidr": "10.250.0.0/16", "zones": c.Zones, "enableNatGateway": true, "idleConnectionTimeoutMinutes": 4}
}

func (c *Cluster) gcp() {
	c.Provider, c.Region, c.Binding, c.MachineType = "gcp", "europe-west3", "former-gcp", "n2-standard-4"
	c.Zones = []string{"europe-west3-a", "europe-west3-b", "europe-west3-c"}
	c.ProviderConfig = map[string]any{"zones": c.Zones}
}

func (c *Cluster) openstack() {
	c.Provider, c.Region, c.Binding, c.MachineType = "openstack", "eu-de-1", "former-openstack", "g_c4_m16"
	c.Zones = []string{"eu-de-1a", "eu-de-1b", "eu-de-1d"}
	c.ProviderConfig = map[string]any{
		"zones": c.Zones, "floatingPoolName": "FloatingIP-external-cp", "cloudProfileName": "converged-cloud-cp", "loadBalancerProvider": "f5",
	}
}

// Insert inserts the cluster's rows. The administrators and the kubeconfig are encrypted.
func (d Database) Insert(c Cluster) {
	d.Helper()

	config, err := json.Marshal(c.ProviderConfig)
	if err != nil {
		d.Fatal(err)
	}

	configID := uuid.NewString()
	statements := []statement{
		row("cluster", column{"id", c.ID}, column{"kubeconfig", Encrypt(d, "apiVersion: v1\nkind: Config\n")}, column{"tenant", c.Tenant},
			column{"creation_timestamp", c.CreatedAt}, column{"sub_account_id", c.SubAccount}, column{"is_kubeconfig_encrypted", true}),
		row("gardener_config", column{"id", configID}, column{"cluster_id", c.ID}, column{"name", c.Name}, column{"project_name", Project},
			column{"kubernetes_version", "1.33.11"}, column{"volume_size_gb", "50"}, column{"disk_type", c.diskType()}, column{"machine_type", c.MachineType},
			column{"machine_image", ""}, column{"machine_image_version", ""}, column{"region", c.Region}, column{"provider", c.Provider},
			column{"purpose", c.Purpose}, column{"licence_type", nil}, column{"seed", ""}, column{"target_secret", c.Binding},
			column{"worker_cidr", c.WorkerCIDR}, column{"auto_scaler_min", c.Minimum}, column{"auto_scaler_max", c.Maximum},
			column{"max_surge", 1}, column{"max_unavailable", 0}, column{"enable_kubernetes_version_auto_update", false},
			column{"enable_machine_image_version_auto_update", false}, column{"exposure_class_name", nil},
			column{"provider_specific_config", string(config)}, column{"shoot_networking_filter_disabled", true},
			column{"control_plane_failure_tolerance", nil}, column{"eu_access", c.EUAccess}),
		c.operation(c.CreationID, "PROVISION_NO_INSTALL", c.CreationState, c.CreatedAt),
	}

	if c.ChangeType != "" {
		statements = append(statements, c.operation(c.ChangeID, c.ChangeType, c.ChangeState, c.CreatedAt.Add(24*time.Hour)))
	}

	for _, user := range c.Administrators {
		statements = append(statements, row("cluster_administrator", column{"id", uuid.NewString()}, column{"cluster_id", c.ID},
			column{"user_id", Encrypt(d, user)}, column{"is_user_id_encrypted", true}))
	}

	if c.OIDC {
		statements = append(statements, row("oidc_config", column{"id", configID}, column{"gardener_config_id", configID}, column{"client_id", "9bd05ed7"},
			column{"groups_claim", "groups"}, column{"issuer_url", "https://kyma.accounts.example.com"}, column{"username_claim", "sub"},
			column{"username_prefix", "-"}),
			row("signing_algorithms", column{"id", uuid.NewString()}, column{"oidc_config_id", configID}, column{"algorithm", "RS256"}))
	}

	if c.DNSSecret != "" {
		id := uuid.NewString()
		statements = append(statements, row("dns_config", column{"id", id}, column{"domain", c.Domain()}, column{"gardener_config_id", configID}),
			row("dns_providers", column{"id", uuid.NewString()}, column{"dns_config_id", id}, column{"domains_include", c.Domain()},
				column{"is_primary", true}, column{"secret_name", c.DNSSecret}, column{"type", "aws-route53"}))
	}

	d.run(statements...)
}

// operation returns an INSERT statement for an operation that took half an hour.
func (c Cluster) operation(id, operationType, state string, began time.Time) statement {
	columns := []column{
		{"id", id},
		{"type", operationType},
		{"state", state},
		{"message", "Operation succeeded"},
		{"start_timestamp", began},
		{"end_timestamp", began.Add(30 * time.Minute)},
		{"cluster_id", c.ID},
		{"stage", "Finished"},
		{"last_transition", began},
	}

	if state == "FAILED" {
		columns = append(columns, column{"err_message", "the Shoot is in state Failed"}, column{"reason", "ERR_INFRA_QUOTA_EXCEEDED"},
			column{"component", "gardener"})
	}

	return row("operation", columns...)
}

func (c Cluster) diskType() string {
	return map[string]string{"aws": "gp3", "azure": "StandardSSD_LRS", "gcp": "pd-balanced"}[c.Provider]
}

// column is the name of a column and its value in one row.
type column struct {
	name  string
	value any
}

// statement is an INSERT statement with its arguments.
type statement struct {
	text string
	args []any
}

// row returns a statement that inserts one row into a table.
func row(table string, columns ...column) statement {
	names, values := "", ""
	found := statement{}

	for i, each := range columns {
		if i > 0 {
			names, values = names+", ", values+", "
		}

		names, values = names+each.name, values+"?"
		found.args = append(found.args, each.value)
	}

	found.text = fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, names, values)

	return found
}
