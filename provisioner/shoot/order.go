package shoot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/objectdiff"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// OrderOf returns the order for a Shoot that another program has created. targetSecret is the name of the Shoot's
// CredentialsBinding. The order contains no domain, identity provider or Seed: the Shoot keeps its own. If no order can express a
// field of the Shoot, the error is failure.Permanent and names the field.
func OrderOf(present *gardencorev1beta1.Shoot, targetSecret string) (*spec.Cluster, error) {
	if len(present.Spec.Provider.Workers) == 0 {
		return nil, failure.New(failure.Permanent, "the Shoot has no worker pools")
	}

	provider, workers, err := providerOrder(present)
	if err != nil {
		return nil, err
	}

	first, err := poolOrder(present.Spec.Provider.Workers[0], present.Spec.Provider.Type)
	if err != nil {
		return nil, err
	}

	order := &spec.Cluster{
		Name: present.Name, KubernetesVersion: present.Spec.Kubernetes.Version, Provider: present.Spec.Provider.Type, TargetSecret: targetSecret,
		Region: present.Spec.Region, MachineType: first.MachineType, MachineImage: first.MachineImage, MachineImageVersion: first.MachineImageVersion,
		DiskType: first.DiskType, VolumeSizeGB: first.VolumeSizeGB, WorkerCIDR: workers, AutoScalerMin: first.AutoScalerMin,
		AutoScalerMax: first.AutoScalerMax, MaxSurge: first.MaxSurge, MaxUnavailable: first.MaxUnavailable,
		ProviderSpecificConfig: provider, ExposureClassName: present.Spec.ExposureClassName,
		Adopted: &spec.Adopted{WorkerPool: first.Name, ProviderSpecificConfig: provider},
	}

	if licence := present.Annotations[AnnotationLicenceType]; licence != "" {
		order.LicenceType = &licence
	}

	// Orders cannot contain the purpose "infrastructure". A Shoot with this purpose keeps it.
	if purpose := ptr.Deref(present.Spec.Purpose, ""); purpose != "" && purpose != gardencorev1beta1.ShootPurposeInfrastructure {
		order.Purpose = (*string)(present.Spec.Purpose)
	}

	if networks := present.Spec.Networking; networks != nil {
		order.PodsCIDR, order.ServicesCIDR = networks.Pods, networks.Services
	}

	if maintenance := present.Spec.Maintenance; maintenance != nil && maintenance.AutoUpdate != nil {
		order.EnableKubernetesVersionAutoUpdate = new(maintenance.AutoUpdate.KubernetesVersion)
		order.EnableMachineImageVersionAutoUpdate = maintenance.AutoUpdate.MachineImageVersion
	}

	if plane := present.Spec.ControlPlane; plane != nil && plane.HighAvailability != nil {
		order.ControlPlaneFailureTolerance = new(string(plane.HighAvailability.FailureTolerance.Type))
	}

	for _, extension := range present.Spec.Extensions {
		if extension.Type == ExtensionNetworkingFilter {
			order.ShootNetworkingFilterDisabled = new(ptr.Deref(extension.Disabled, false))
		}
	}

	order.EUAccess = new(slices.ContainsFunc(present.Spec.AccessRestrictions, func(each gardencorev1beta1.AccessRestrictionWithOptions) bool {
		return each.Name == euAccessOnly && each.Options[euAccessNodes] == "true" && each.Options[euAccessAddons] == "true"
	}))

	for _, worker := range present.Spec.Provider.Workers[1:] {
		pool, err := poolOrder(worker, present.Spec.Provider.Type)
		if err != nil {
			return nil, err
		}

		order.AdditionalWorkers = append(order.AdditionalWorkers, pool)
	}

	return order, nil
}

// poolOrder returns the order for a worker pool. It omits disks on OpenStack and disks whose size is not in GiB: the Shoot keeps
// these disks.
func poolOrder(worker gardencorev1beta1.Worker, provider string) (*spec.WorkerPool, error) {
	pool := &spec.WorkerPool{
		Name: worker.Name, MachineType: worker.Machine.Type, AutoScalerMin: int(worker.Minimum), AutoScalerMax: int(worker.Maximum), Zones: worker.Zones,
	}

	for _, each := range []struct {
		field string
		value *intstr.IntOrString
		into  *int
	}{{"maxSurge", worker.MaxSurge, &pool.MaxSurge}, {"maxUnavailable", worker.MaxUnavailable, &pool.MaxUnavailable}} {
		if each.value == nil {
			continue
		}

		if each.value.Type != intstr.Int {
			return nil, failure.New(failure.Permanent, "%s of the worker pool %s is %s, but an order can only contain a number: change the Shoot first",
				each.field, worker.Name, each.value.String())
		}

		*each.into = each.value.IntValue()
	}

	if image := worker.Machine.Image; image != nil {
		pool.MachineImage, pool.MachineImageVersion = &image.Name, image.Version
	}

	if volume := worker.Volume; volume != nil && volume.Type != nil && provider != "openstack" {
		if size, err := strconv.Atoi(strings.TrimSuffix(volume.VolumeSize, "Gi")); err == nil && strings.HasSuffix(volume.VolumeSize, "Gi") {
			pool.DiskType, pool.VolumeSizeGB = volume.Type, &size
		}
	}

	return pool, nil
}

// infrastructure contains the fields that orders can express, from the infrastructure configurations of all providers.
type infrastructure struct {
	FloatingPoolName string `json:"floatingPoolName"`
	Networks         struct {
		Vpc     addresses `json:"vpc"`
		Vnet    addresses `json:"vnet"`
		Workers string    `json:"workers"`
		Worker  string    `json:"worker"`
		NAT     *gateway  `json:"natGateway"`
		Zones   []struct {
			Name     any      `json:"name"`
			CIDR     string   `json:"cidr"`
			Workers  string   `json:"workers"`
			Public   string   `json:"public"`
			Internal string   `json:"internal"`
			NAT      *gateway `json:"natGateway"`
		} `json:"zones"`
	} `json:"networks"`
}

// addresses is a provider network with its address range.
type addresses struct {
	CIDR string `json:"cidr"`
}

type gateway struct {
	Enabled                      bool `json:"enabled"`
	IdleConnectionTimeoutMinutes *int `json:"idleConnectionTimeoutMinutes"`
}

// controlPlane contains the fields that orders can express, from the control plane configurations of all providers.
type controlPlane struct {
	Zone                 string `json:"zone"`
	LoadBalancerProvider string `json:"loadBalancerProvider"`
}

// providerOrder returns the provider-specific part of the order, and the address range of the machines.
func providerOrder(present *gardencorev1beta1.Shoot) (_ *spec.Provider, workers string, _ error) {
	var (
		config infrastructure
		plane  controlPlane
		nodes  string
	)

	given := present.Spec.Provider

	if raw := given.InfrastructureConfig; raw != nil {
		if err := json.Unmarshal(raw.Raw, &config); err != nil {
			return nil, "", failure.Wrap(failure.Permanent, err, "the infrastructureConfig of the Shoot cannot be parsed")
		}
	}

	if raw := given.ControlPlaneConfig; raw != nil {
		if err := json.Unmarshal(raw.Raw, &plane); err != nil {
			return nil, "", failure.Wrap(failure.Permanent, err, "the controlPlaneConfig of the Shoot cannot be parsed")
		}
	}

	if present.Spec.Networking != nil {
		nodes = ptr.Deref(present.Spec.Networking.Nodes, "")
	}

	networks, zones := config.Networks, zonesOf(given.Workers)
	workers = cmp.Or(networks.Workers, networks.Worker, nodes)

	switch given.Type {
	case "aws":
		order, err := awsOrder(config, given.Workers[0])

		return order, cmp.Or(nodes, networks.Vpc.CIDR), err
	case "azure":
		order, err := azureOrder(config, zones)

		return order, workers, err
	case "gcp":
		// The control plane runs in the first zone of an order.
		slices.SortStableFunc(zones, func(one, other string) int { return order(one == plane.Zone) - order(other == plane.Zone) })

		return &spec.Provider{GCPConfig: &spec.GCP{Zones: zones}}, workers, nil
	case "openstack":
		profile := ptr.Deref(present.Spec.CloudProfileName, "") //nolint:staticcheck // Old Shoots have the deprecated field.
		if present.Spec.CloudProfile != nil {
			profile = present.Spec.CloudProfile.Name
		}

		return &spec.Provider{OpenStackConfig: &spec.OpenStack{
			Zones: zones, FloatingPoolName: &config.FloatingPoolName, CloudProfileName: &profile, LoadBalancerProvider: plane.LoadBalancerProvider,
		}}, workers, nil
	default:
		return nil, "", failure.New(failure.Permanent, "the provider %q is not supported: it must be aws, azure, gcp or openstack", given.Type)
	}
}

// awsOrder returns the AWS part of the order.
func awsOrder(config infrastructure, worker gardencorev1beta1.Worker) (*spec.Provider, error) {
	if config.Networks.Vpc.CIDR == "" {
		return nil, failure.New(failure.Permanent, "the Shoot uses an existing VPC, but an order must contain the address range of a new VPC")
	}

	order := &spec.AWS{VpcCIDR: config.Networks.Vpc.CIDR, EnableIMDSv2: new(requiresTokens(worker))}
	for _, zone := range config.Networks.Zones {
		order.AWSZones = append(order.AWSZones, &spec.AWSZone{
			Name: fmt.Sprint(zone.Name), PublicCIDR: zone.Public, InternalCIDR: zone.Internal, WorkerCIDR: zone.Workers,
		})
	}

	return &spec.Provider{AWSConfig: order}, nil
}

// azureOrder returns the Azure part of the order. zones contains the zones of all worker pools.
func azureOrder(config infrastructure, zones []string) (*spec.Provider, error) {
	networks := config.Networks
	if networks.Vnet.CIDR == "" {
		return nil, failure.New(failure.Permanent, "the Shoot uses an existing virtual network, but an order must contain the address range of a new one")
	}

	order, nat := &spec.Azure{VnetCIDR: networks.Vnet.CIDR}, networks.NAT

	for _, zone := range networks.Zones {
		number, err := strconv.Atoi(fmt.Sprint(zone.Name))
		if err != nil {
			return nil, failure.New(failure.Permanent, "the infrastructureConfig of the Shoot has the zone %q, which is not a number", fmt.Sprint(zone.Name))
		}

		order.AzureZones = append(order.AzureZones, &spec.AzureZone{Name: number, CIDR: zone.CIDR})
		nat = zone.NAT
	}

	if len(networks.Zones) == 0 {
		order.Zones = zones
	}

	if nat != nil && nat.Enabled {
		order.EnableNATGateway, order.IdleConnectionTimeoutMinutes = new(true), nat.IdleConnectionTimeoutMinutes
	}

	return &spec.Provider{AzureConfig: order}, nil
}

// order returns a sort key that puts true before false.
func order(first bool) int {
	if first {
		return 0
	}

	return 1
}

// zonesOf returns the zones of all pools, in the order in which the pools name them.
func zonesOf(workers []gardencorev1beta1.Worker) []string {
	var zones []string

	for _, worker := range workers {
		for _, zone := range worker.Zones {
			if !slices.Contains(zones, zone) {
				zones = append(zones, zone)
			}
		}
	}

	return zones
}

// requiresTokens reports whether the metadata service of the machines requires tokens (IMDSv2).
func requiresTokens(worker gardencorev1beta1.Worker) bool {
	var config struct {
		InstanceMetadataOptions struct {
			HTTPTokens string `json:"httpTokens"`
		} `json:"instanceMetadataOptions"`
	}

	return worker.ProviderConfig != nil && json.Unmarshal(worker.ProviderConfig.Raw, &config) == nil && config.InstanceMetadataOptions.HTTPTokens == "required"
}

// Inexpressible returns the given changes that must not happen to an adopted Shoot. The argument is the result of
// FirstChange. The first change may only add the owner and the settings that the configuration of the Provisioner requires for
// all Shoots.
func Inexpressible(changes []objectdiff.Change) []objectdiff.Change {
	announced := []string{
		"metadata.", "ConfigMap ", "spec.credentialsBindingName", "spec.secretBindingName", "spec.provider.workersSettings.sshAccess",
		"spec.extensions", "spec.resources", "spec.maintenance.timeWindow",
		"spec.kubernetes.kubeAPIServer.auditConfig", "spec.kubernetes.kubeAPIServer.structuredAuthentication", "spec.tolerations",
	}

	return slices.DeleteFunc(slices.Clone(changes), func(change objectdiff.Change) bool {
		return slices.ContainsFunc(announced, func(prefix string) bool { return strings.HasPrefix(change.Path, prefix) })
	})
}

// NotInOrder returns the paths of the fields in the spec of a Shoot that a new Shoot for the same order would not have, or would have with
// another value. If the new Shoot would not have an object at all, the result contains the path of the object instead of the paths of its
// fields. The new Shoot has the defaults of Gardener's API, but not the fields that Gardener sets later.
func (o *Objects) NotInOrder(present *gardencorev1beta1.Shoot) ([]string, error) {
	created := o.Shoot.DeepCopy()
	gardencorev1beta1.SetObjectDefaults_Shoot(created)

	if maintenance := o.Shoot.Spec.Maintenance; maintenance == nil || maintenance.TimeWindow == nil {
		created.Spec.Maintenance.TimeWindow = nil // the default is random
	}

	built, err := Manifest(created)
	if err != nil {
		return nil, err
	}

	had, err := Manifest(present)
	if err != nil {
		return nil, err
	}

	paths, err := objectdiff.Missing(built.Object["spec"], had.Object["spec"])
	if err != nil {
		return nil, fmt.Errorf("comparing Shoots: %w", err)
	}

	for i := range paths {
		paths[i] = "spec." + paths[i]
	}

	return paths, nil
}
