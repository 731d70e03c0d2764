package reconciler

import (
	"encoding/json"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// Cluster is a runtime with its Kyma configuration, in its wire format. It contains secrets and must not be logged or stored in
// plain text.
type Cluster struct {
	RuntimeID  string     `json:"runtimeID"`
	Runtime    Runtime    `json:"runtimeInput"`
	Kyma       KymaConfig `json:"kymaConfig"`
	Metadata   Metadata   `json:"metadata"`
	Kubeconfig string     `json:"kubeconfig"`
}

// Runtime describes the cluster. The Reconciler accepts a new kubeconfig only if this description or the metadata also changes.
type Runtime struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// KymaConfig is a configuration of Kyma. The order of its lists matters when the Reconciler compares configurations.
type KymaConfig struct {
	Version        string      `json:"version"`
	Profile        string      `json:"profile"`
	Administrators []string    `json:"administrators"`
	Components     []Component `json:"components"`
}

// Component is a component of Kyma with its configuration values. An empty URL means the URL of the release, and an empty
// version means the version of Kyma.
type Component struct {
	Component     string  `json:"component"`
	Namespace     string  `json:"namespace"`
	URL           string  `json:"URL"`
	Version       string  `json:"version"`
	Configuration []Entry `json:"configuration"`
}

// Entry is a value of a component: a string or a Boolean.
type Entry struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Secret bool   `json:"secret"`
}

// Metadata describes the instance to which the cluster belongs.
type Metadata struct {
	GlobalAccountID string `json:"globalAccountID"`
	SubAccountID    string `json:"subAccountID"`
	ServiceID       string `json:"serviceID"`
	ServicePlanID   string `json:"servicePlanID"`
	ServicePlanName string `json:"servicePlanName"`
	ShootName       string `json:"shootName"`
	InstanceID      string `json:"instanceID"`
	Region          string `json:"region"`
}

// keyDomain is the configuration key for the runtime's domain, which every component gets.
const keyDomain = "global.domainName"

// NewCluster returns the cluster of an instance, which must have a Kyma installation. domain is the runtime's domain, or empty
// if it is unknown. description must change with the kubeconfig; see Runtime.
func NewCluster(instance environment.Instance, kubeconfig secret.String, domain, description string) Cluster {
	installation := instance.Request.Cluster.Kyma.Installation

	shared := installation.Configuration
	if domain != "" {
		shared = append([]environment.KymaEntry{{Key: keyDomain, Value: secret.String(domain)}}, shared...)
	}

	cluster := Cluster{
		RuntimeID: instance.RuntimeID,
		Runtime:   Runtime{Name: instance.ShootName, Description: description},
		Kyma: KymaConfig{
			Version: installation.Version, Profile: installation.Profile,
			Administrators: append([]string{}, instance.Request.Cluster.Administrators...), Components: []Component{},
		},
		Metadata: Metadata{
			GlobalAccountID: instance.GlobalAccountID, SubAccountID: instance.SubAccountID, ServiceID: instance.ServiceID,
			ServicePlanID: instance.PlanID, ServicePlanName: instance.PlanName, ShootName: instance.ShootName,
			InstanceID: instance.ID, Region: instance.Region,
		},
		Kubeconfig: kubeconfig.Reveal(),
	}

	for _, component := range installation.Components {
		cluster.Kyma.Components = append(cluster.Kyma.Components, Component{
			Component: component.Name, Namespace: component.Namespace, URL: component.SourceURL,
			Configuration: entries(shared, component.Configuration),
		})
	}

	return cluster
}

// Record returns the broker's record of an instance's cluster.
func Record(instanceID, runtimeID string, state environment.OutsideState) environment.OutsideObject {
	return environment.OutsideObject{
		InstanceID: instanceID, System: environment.SystemReconciler, Kind: environment.KindCluster, Key: runtimeID, State: state,
	}
}

// Encode returns the cluster as JSON for storage, without its kubeconfig. Decode reverses it.
func (c Cluster) Encode() (secret.String, error) {
	c.Kubeconfig = ""

	encoded, err := json.Marshal(c)
	if err != nil {
		return "", failure.New(failure.Internal, "the cluster for the Reconciler cannot be encoded") // the cause might quote a secret
	}

	return secret.String(encoded), nil
}

// Decode decodes a result of Encode, and sets the kubeconfig and the description.
func Decode(encoded, kubeconfig secret.String, description string) (Cluster, error) {
	var cluster Cluster
	if err := json.Unmarshal([]byte(encoded.Reveal()), &cluster); err != nil {
		return Cluster{}, failure.New(failure.Internal, "the stored cluster for the Reconciler cannot be decoded") // the cause might quote a secret
	}

	cluster.Kubeconfig, cluster.Runtime.Description = kubeconfig.Reveal(), description

	return cluster, nil
}

// entries returns the values of one component, including the values that all components share. The component's own values take
// precedence.
func entries(shared, own []environment.KymaEntry) []Entry {
	merged := environment.KymaInstallation{Configuration: shared}
	merged.Set("", own...)

	result := make([]Entry, 0, len(merged.Configuration))

	for _, entry := range merged.Configuration {
		var value any = entry.Value.Reveal()

		switch value {
		case "true":
			value = true
		case "false":
			value = false
		}

		result = append(result, Entry{Key: entry.Key, Value: value, Secret: entry.Secret})
	}

	return result
}
