package adopt

import (
	"bytes"
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/labels/tenancy"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/takeover"
)

// kinds maps Kyma Provisioner's operation types to our operation kinds.
func kinds() map[string]string {
	return map[string]string{
		"PROVISION": operation.KindProvision, "PROVISION_NO_INSTALL": operation.KindProvisionNoInstall,
		"UPGRADE": operation.KindUpgrade, "UPGRADE_SHOOT": operation.KindUpgradeShoot, "HIBERNATE": operation.KindHibernate,
		"DEPROVISION": operation.KindDeprovision, "DEPROVISION_NO_INSTALL": operation.KindDeprovisionNoInstall,
		"RECONNECT_RUNTIME": operation.KindReconnectRuntime,
	}
}

const (
	formerSucceeded = "SUCCEEDED"
	formerFailed    = "FAILED"
)

// provisions reports whether the operation created a cluster.
func (o formerOperation) provisions() bool { return strings.HasPrefix(o.Type, "PROVISION") }

// ending returns the result and the times of the operation. It returns an error for an operation that has not ended.
func (o formerOperation) ending() (operations.Ending, error) {
	ending := operations.Ending{State: process.Succeeded, Began: o.Began, At: o.Began}
	if o.Ended.Valid && o.Ended.Time.After(o.Began) {
		ending.At = o.Ended.Time
	}

	switch o.State {
	case formerSucceeded:
		return ending, nil
	case formerFailed:
		ending.State = process.Failed
		ending.Problem = process.Problem{Message: cmp.Or(o.Problem, "the operation failed in Kyma Provisioner"), Reason: o.Reason, Component: o.Component}

		return ending, nil
	default:
		return ending, fmt.Errorf("operation %s has not ended: its state is %s", o.ID, o.State)
	}
}

// orderOf returns the order for the cluster, without Kyma. If the row lacks the pod and service ranges, orderOf takes them from
// the Shoot. The seed is omitted, because Gardener may have moved the control plane. The cipher may be nil if no column is
// encrypted.
func (c cluster) orderOf(present *gardencorev1beta1.Shoot, cipher *takeover.Cipher) (spec.Runtime, error) {
	diskType, size, err := c.volume()
	if err != nil {
		return spec.Runtime{}, err
	}

	provider, err := providerOf(c.Provider.String, c.ProviderConfig.String)
	if err != nil {
		return spec.Runtime{}, err
	}

	users, err := c.users(cipher)
	if err != nil {
		return spec.Runtime{}, err
	}

	config := &spec.Cluster{
		Name: c.Name.String, KubernetesVersion: c.KubernetesVersion.String, Provider: c.Provider.String, TargetSecret: c.TargetSecret.String,
		Region: c.Region.String, MachineType: c.MachineType.String, MachineImage: text(c.MachineImage), MachineImageVersion: text(c.MachineImageVersion),
		DiskType: diskType, VolumeSizeGB: size, WorkerCIDR: c.WorkerCIDR.String, PodsCIDR: text(c.PodsCIDR), ServicesCIDR: text(c.ServicesCIDR),
		AutoScalerMin: int(c.Minimum.Int64), AutoScalerMax: int(c.Maximum.Int64), MaxSurge: int(c.Surge.Int64), MaxUnavailable: int(c.Unavailable.Int64),
		Purpose: text(c.Purpose), LicenceType: text(c.LicenceType),
		EnableKubernetesVersionAutoUpdate: flag(c.UpdateKubernetes), EnableMachineImageVersionAutoUpdate: flag(c.UpdateMachineImage),
		ProviderSpecificConfig: provider, DNSConfig: c.dns(), OIDCConfig: c.oidc(), ExposureClassName: text(c.ExposureClass),
		ShootNetworkingFilterDisabled: flag(c.NoNetworkingFilter), ControlPlaneFailureTolerance: text(c.FailureTolerance), EUAccess: flag(c.EUAccess),
	}

	if networks := present.Spec.Networking; networks != nil {
		config.PodsCIDR, config.ServicesCIDR = cmp.Or(config.PodsCIDR, networks.Pods), cmp.Or(config.ServicesCIDR, networks.Services)
	}

	return spec.Runtime{
		Metadata:      &spec.Metadata{Name: config.Name},
		ClusterConfig: &spec.ClusterConfig{GardenerConfig: config, Administrators: users},
	}, nil
}

// runtimeOf returns the runtime to store, with the order as its configuration.
func (c cluster) runtimeOf(order spec.Runtime) (runtimes.Runtime, error) {
	configuration, err := spec.Encode(order)
	if err != nil {
		return runtimes.Runtime{}, err
	}

	return runtimes.Runtime{
		ID: c.ID, Tenant: tenancy.Label(c.Tenant), SubAccount: tenancy.Label(c.SubAccount.String),
		OriginalTenant: tenancy.Original(c.Tenant), OriginalSubAccount: tenancy.Original(c.SubAccount.String),
		ShootName: c.Name.String, ProvisionedBy: c.creation.ID, Configuration: configuration, CreatedAt: c.CreatedAt,
		Provider: c.Provider.String, Region: c.Region.String,
	}, nil
}

// volume returns the disk type and the disk size in GiB. If either is missing, it returns nil for both, because Kyma Provisioner
// ignored one without the other.
func (c cluster) volume() (diskType *string, size *int, err error) {
	if c.VolumeSize.String == "" || c.DiskType.String == "" {
		return nil, nil, nil
	}

	parsed, err := strconv.Atoi(c.VolumeSize.String)
	if err != nil {
		return nil, nil, fmt.Errorf("volume_size_gb is not a number: %q", c.VolumeSize.String)
	}

	return &c.DiskType.String, &parsed, nil
}

// users returns the administrators, sorted, because the table does not preserve their order.
func (c cluster) users(cipher *takeover.Cipher) ([]string, error) {
	var users []string

	for _, row := range c.administrators {
		user := row.User

		if row.Encrypted {
			plain, err := cipher.Decrypt(row.User)
			if err != nil {
				return nil, fmt.Errorf("decrypting an administrator: %w", err)
			}

			user = plain.Reveal()
		}

		users = append(users, user)
	}

	slices.Sort(users)

	return users, nil
}

func (c cluster) oidc() *spec.OIDC {
	if c.identity == nil {
		return nil
	}

	return &spec.OIDC{
		ClientID: c.identity.ClientID, GroupsClaim: c.identity.GroupsClaim, IssuerURL: c.identity.IssuerURL, SigningAlgs: c.algorithms,
		UsernameClaim: c.identity.UsernameClaim, UsernamePrefix: c.identity.UsernamePrefix,
	}
}

func (c cluster) dns() *spec.DNS {
	if c.domain == nil {
		return nil
	}

	dns := &spec.DNS{Domain: c.domain.Domain}

	for _, row := range c.providers {
		provider := &spec.DNSProvider{Primary: row.Primary, SecretName: row.SecretName, Type: row.Type}

		for domain := range strings.SplitSeq(row.Include, ",") {
			if domain = strings.TrimSpace(domain); domain != "" {
				provider.DomainsInclude = append(provider.DomainsInclude, domain)
			}
		}

		dns.Providers = append(dns.Providers, provider)
	}

	return dns
}

// providerOf decodes the provider-specific configuration. The provider determines the type to decode into, because a small
// configuration could belong to several providers.
func providerOf(provider, config string) (*spec.Provider, error) {
	parts := &spec.Provider{}

	var into any

	switch provider {
	case "aws":
		parts.AWSConfig = &spec.AWS{}
		into = parts.AWSConfig
	case "azure":
		parts.AzureConfig = &spec.Azure{}
		into = parts.AzureConfig
	case "gcp":
		parts.GCPConfig = &spec.GCP{}
		into = parts.GCPConfig
	case "openstack":
		parts.OpenStackConfig = &spec.OpenStack{}
		into = parts.OpenStackConfig
	default:
		return nil, fmt.Errorf("the provider %q is not supported", provider)
	}

	if config == "" {
		return nil, errors.New("provider_specific_config is empty")
	}

	decoder := json.NewDecoder(bytes.NewReader([]byte(config)))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(into); err != nil {
		return nil, fmt.Errorf("provider_specific_config does not fit the provider %s: %w", provider, err)
	}

	return parts, nil
}

// text returns nil for NULL and for an empty string, which are equivalent in orders.
func text(value sql.NullString) *string {
	if value.String == "" {
		return nil
	}

	return &value.String
}

// flag returns the value, or nil for NULL.
func flag(value sql.NullBool) *bool {
	if !value.Valid {
		return nil
	}

	return &value.Bool
}
