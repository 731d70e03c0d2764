package catalog

import "github.com/environment-broker/environment-broker/internal/environment"

// Resolved contains the parameters of an instance, including all defaults. Its JSON fields have the names of the parameters. It
// contains no secrets. Validations and the operator API return it as JSON.
type Resolved struct {
	Name              string            `json:"name"`
	Provider          string            `json:"provider,omitempty"`
	Region            string            `json:"region,omitempty"`
	KubernetesVersion string            `json:"kubernetesVersion,omitempty"`
	MachineType       string            `json:"machineType,omitempty"`
	VolumeSizeGB      int               `json:"volumeSizeGb,omitempty"`
	AutoScalerMin     int               `json:"autoScalerMin,omitempty"`
	AutoScalerMax     int               `json:"autoScalerMax,omitempty"`
	MaxSurge          *int              `json:"maxSurge,omitempty"`
	MaxUnavailable    *int              `json:"maxUnavailable,omitempty"`
	Zones             []string          `json:"zones,omitempty"`
	Purpose           string            `json:"purpose,omitempty"`
	Networking        *ResolvedNetworks `json:"networking,omitempty"`
	Administrators    []string          `json:"administrators,omitempty"`
	OIDC              *environment.OIDC `json:"oidc,omitempty"`
	EUAccess          bool              `json:"euAccess,omitempty"`
	KymaVersion       string            `json:"kymaVersion,omitempty"`
	Modules           []string          `json:"modules,omitempty"`
}

// ResolvedNetworks contains ranges in CIDR notation. Ranges that Gardener chooses are absent.
type ResolvedNetworks struct {
	Nodes    string `json:"nodes"`
	Pods     string `json:"pods,omitempty"`
	Services string `json:"services,omitempty"`
}

// ResolvedOf returns the parameters of an instance whose request was resolved. For a cluster that the tenant
// brings, it returns only the name of the instance. If rangesLeftOpen is true, Gardener chooses the ranges of pods
// and services, and the result omits them.
func ResolvedOf(instance environment.Instance, rangesLeftOpen bool) *Resolved {
	cluster := instance.Request.Cluster
	if cluster.Own != nil {
		return &Resolved{Name: instance.Name}
	}

	networks := &ResolvedNetworks{Nodes: cluster.NodesCIDR}
	if !rangesLeftOpen {
		networks.Pods, networks.Services = cluster.PodsCIDR, cluster.ServicesCIDR
	}

	kyma := environment.Kyma{}
	if cluster.Kyma != nil {
		kyma = *cluster.Kyma
	}

	return &Resolved{
		Name: instance.Name, Provider: instance.Provider, Region: instance.Region, KubernetesVersion: cluster.KubernetesVersion,
		MachineType: cluster.MachineType, VolumeSizeGB: cluster.VolumeSizeGB,
		AutoScalerMin: cluster.AutoScalerMin, AutoScalerMax: cluster.AutoScalerMax,
		MaxSurge: &cluster.MaxSurge, MaxUnavailable: &cluster.MaxUnavailable, Zones: cluster.Zones, Purpose: cluster.Purpose,
		Networking:     networks,
		Administrators: cluster.Administrators, OIDC: cluster.OIDC, EUAccess: cluster.EUAccess,
		KymaVersion: kyma.Version, Modules: kyma.Modules,
	}
}
