package adopt

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/storage/takeover"
)

// Kyma describes Kyma Provisioner to package takeover. Its database schema must be from August 2023 or later, and no operation
// may be in progress.
func Kyma() takeover.Program {
	return takeover.Program{
		Name: "Kyma Provisioner", Version: 202308180833,
		Unfinished: `SELECT format('operation %s (%s) of cluster %s', id, type, cluster_id) FROM operation WHERE state = 'IN_PROGRESS' ORDER BY start_timestamp`,
	}
}

// cluster is a row of the cluster table, joined with its gardener_config row. If that row is missing, its columns are NULL.
type cluster struct {
	ID         string         `db:"id"`
	Tenant     string         `db:"tenant"`
	SubAccount sql.NullString `db:"sub_account_id"`
	CreatedAt  time.Time      `db:"creation_timestamp"`
	HasKyma    bool           `db:"has_kyma"`

	ConfigID          sql.NullString `db:"config_id"`
	Name              sql.NullString `db:"name"`
	KubernetesVersion sql.NullString `db:"kubernetes_version"`
	Provider          sql.NullString `db:"provider"`
	Region            sql.NullString `db:"region"`
	TargetSecret      sql.NullString `db:"target_secret"`

	VolumeSize          sql.NullString `db:"volume_size_gb"`
	DiskType            sql.NullString `db:"disk_type"`
	MachineType         sql.NullString `db:"machine_type"`
	MachineImage        sql.NullString `db:"machine_image"`
	MachineImageVersion sql.NullString `db:"machine_image_version"`
	Minimum             sql.NullInt64  `db:"auto_scaler_min"`
	Maximum             sql.NullInt64  `db:"auto_scaler_max"`
	Surge               sql.NullInt64  `db:"max_surge"`
	Unavailable         sql.NullInt64  `db:"max_unavailable"`

	WorkerCIDR   sql.NullString `db:"worker_cidr"`
	PodsCIDR     sql.NullString `db:"pods_cidr"`
	ServicesCIDR sql.NullString `db:"services_cidr"`

	Purpose            sql.NullString `db:"purpose"`
	LicenceType        sql.NullString `db:"licence_type"`
	UpdateKubernetes   sql.NullBool   `db:"enable_kubernetes_version_auto_update"`
	UpdateMachineImage sql.NullBool   `db:"enable_machine_image_version_auto_update"`
	ExposureClass      sql.NullString `db:"exposure_class_name"`
	ProviderConfig     sql.NullString `db:"provider_specific_config"`
	NoNetworkingFilter sql.NullBool   `db:"shoot_networking_filter_disabled"`
	FailureTolerance   sql.NullString `db:"control_plane_failure_tolerance"`
	EUAccess           sql.NullBool   `db:"eu_access"`
	administrators     []administrator
	identity           *identity
	algorithms         []string
	domain             *domain
	providers          []dnsProvider
	// creation is the newest operation that created the cluster, and change is the newest other operation. Both may be nil.
	creation, change *formerOperation
}

// administrator is a row of cluster_administrator.
type administrator struct {
	ClusterID string `db:"cluster_id"`
	User      string `db:"user_id"`
	Encrypted bool   `db:"is_user_id_encrypted"`
}

// identity is a row of oidc_config.
type identity struct {
	ID             string `db:"id"`
	ConfigID       string `db:"gardener_config_id"`
	ClientID       string `db:"client_id"`
	GroupsClaim    string `db:"groups_claim"`
	IssuerURL      string `db:"issuer_url"`
	UsernameClaim  string `db:"username_claim"`
	UsernamePrefix string `db:"username_prefix"`
}

// algorithm is a row of signing_algorithms.
type algorithm struct {
	IdentityID string `db:"oidc_config_id"`
	Algorithm  string `db:"algorithm"`
}

// domain is a row of dns_config.
type domain struct {
	ID       string `db:"id"`
	ConfigID string `db:"gardener_config_id"`
	Domain   string `db:"domain"`
}

// dnsProvider is a row of dns_providers.
type dnsProvider struct {
	DomainID string `db:"dns_config_id"`
	// Include contains domains, separated by commas.
	Include    string `db:"domains_include"`
	Primary    bool   `db:"is_primary"`
	SecretName string `db:"secret_name"`
	Type       string `db:"type"`
}

// formerOperation is a row of Kyma Provisioner's operation table.
type formerOperation struct {
	ID        string       `db:"id"`
	ClusterID string       `db:"cluster_id"`
	Type      string       `db:"type"`
	State     string       `db:"state"`
	Began     time.Time    `db:"start_timestamp"`
	Ended     sql.NullTime `db:"end_timestamp"`
	Problem   string       `db:"err_message"`
	Reason    string       `db:"reason"`
	Component string       `db:"component"`
}

// readPage returns the next page of clusters whose IDs sort after the given one, with their rows from the other tables. It omits
// deleted clusters.
func readPage(ctx context.Context, former *takeover.Database, after string) ([]cluster, error) {
	clusters, err := takeover.Select[cluster](ctx, former, `SELECT c.id::text, c.tenant, c.sub_account_id, c.creation_timestamp,
		c.active_kyma_config_id IS NOT NULL AS has_kyma, g.id::text AS config_id, g.name, g.kubernetes_version, g.provider, g.region, g.target_secret,
		g.volume_size_gb::text, g.disk_type, g.machine_type, g.machine_image, g.machine_image_version, g.auto_scaler_min, g.auto_scaler_max,
		g.max_surge, g.max_unavailable, g.worker_cidr, g.pods_cidr, g.services_cidr, g.purpose, g.licence_type,
		g.enable_kubernetes_version_auto_update, g.enable_machine_image_version_auto_update, g.exposure_class_name,
		g.provider_specific_config::text, g.shoot_networking_filter_disabled, g.control_plane_failure_tolerance, g.eu_access
		FROM cluster c LEFT JOIN gardener_config g ON g.cluster_id = c.id
		WHERE c.deleted IS NOT TRUE AND c.id > ?::uuid ORDER BY c.id LIMIT ?`, after, takeover.Page)
	if err != nil || len(clusters) == 0 {
		return clusters, err
	}

	return clusters, complete(ctx, former, clusters)
}

// complete adds the rows of the other tables to the clusters.
func complete(ctx context.Context, former *takeover.Database, clusters []cluster) error {
	ids := make([]string, len(clusters))
	for i := range clusters {
		ids[i] = clusters[i].ID
	}

	administrators, err := takeover.Select[administrator](ctx, former, `SELECT cluster_id::text, user_id, is_user_id_encrypted IS TRUE AS is_user_id_encrypted
		FROM cluster_administrator WHERE cluster_id::text IN (?) ORDER BY cluster_id, id`, ids)
	if err != nil {
		return err
	}

	const ofClusters = ` WHERE gardener_config_id IN (SELECT id FROM gardener_config WHERE cluster_id::text IN (?))`

	identities, err := takeover.Select[identity](ctx, former, `SELECT id::text, gardener_config_id::text, client_id, COALESCE(groups_claim, '') AS groups_claim,
		issuer_url, COALESCE(username_claim, '') AS username_claim, COALESCE(username_prefix, '') AS username_prefix FROM oidc_config`+ofClusters, ids)
	if err != nil {
		return err
	}

	algorithms, err := takeover.Select[algorithm](ctx, former, `SELECT oidc_config_id::text, algorithm FROM signing_algorithms
		WHERE oidc_config_id IN (SELECT id FROM oidc_config`+ofClusters+`) ORDER BY algorithm`, ids)
	if err != nil {
		return err
	}

	domains, err := takeover.Select[domain](ctx, former, `SELECT id::text, gardener_config_id::text, domain FROM dns_config`+ofClusters, ids)
	if err != nil {
		return err
	}

	providers, err := takeover.Select[dnsProvider](ctx, former, `SELECT dns_config_id::text, domains_include, is_primary, secret_name, type FROM dns_providers
		WHERE dns_config_id IN (SELECT id FROM dns_config`+ofClusters+`) ORDER BY id`, ids)
	if err != nil {
		return err
	}

	operations, err := takeover.Select[formerOperation](ctx, former, `SELECT DISTINCT ON (cluster_id, type::text LIKE 'PROVISION%')
		id::text, cluster_id::text, type::text, state::text, start_timestamp, end_timestamp, err_message, reason, component
		FROM operation WHERE cluster_id::text IN (?) ORDER BY cluster_id, type::text LIKE 'PROVISION%', start_timestamp DESC`, ids)
	if err != nil {
		return err
	}

	for i := range clusters {
		each := &clusters[i]
		each.administrators = selected(administrators, func(row administrator) bool { return row.ClusterID == each.ID })
		each.identity = first(identities, func(row identity) bool { return row.ConfigID == each.ConfigID.String })
		each.domain = first(domains, func(row domain) bool { return row.ConfigID == each.ConfigID.String })

		if each.identity != nil {
			for _, row := range selected(algorithms, func(row algorithm) bool { return row.IdentityID == each.identity.ID }) {
				each.algorithms = append(each.algorithms, row.Algorithm)
			}
		}

		if each.domain != nil {
			each.providers = selected(providers, func(row dnsProvider) bool { return row.DomainID == each.domain.ID })
		}

		each.creation = first(operations, func(row formerOperation) bool { return row.ClusterID == each.ID && row.provisions() })
		each.change = first(operations, func(row formerOperation) bool { return row.ClusterID == each.ID && !row.provisions() })
	}

	return nil
}

// samples returns encrypted values with which the key can be checked, at most one from each table.
func samples(ctx context.Context, former *takeover.Database) ([]string, error) {
	return takeover.Select[string](ctx, former, `(SELECT user_id FROM cluster_administrator WHERE is_user_id_encrypted LIMIT 1)
		UNION ALL (SELECT kubeconfig FROM cluster WHERE is_kubeconfig_encrypted AND kubeconfig <> '' LIMIT 1)`)
}

// selected returns the rows that match.
func selected[Row any](rows []Row, matches func(Row) bool) []Row {
	return slices.Collect(func(yield func(Row) bool) {
		for _, row := range rows {
			if matches(row) && !yield(row) {
				return
			}
		}
	})
}

// first returns the first row that matches, or nil.
func first[Row any](rows []Row, matches func(Row) bool) *Row {
	if at := slices.IndexFunc(rows, matches); at >= 0 {
		return &rows[at]
	}

	return nil
}
