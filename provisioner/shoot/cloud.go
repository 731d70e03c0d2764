package shoot

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// cloud is the part of a Shoot that differs between providers. A new provider needs a function that returns its cloud, called by
// cloudOf.
type cloud struct {
	// profile is the name of the cloud profile in Gardener.
	profile string
	// nodes is the network that holds all nodes.
	nodes string
	// zones are the names of the zones of the machines.
	zones []string
	// exposureClass is the default of the provider, or "".
	exposureClass string
	// The extension of Gardener for the provider reads infrastructure, controlPlane and worker; worker may be nil.
	infrastructure any
	controlPlane   any
	worker         any
}

// cloudOf returns the part of the order for its provider, or failure.Invalid. Package validation refuses such orders earlier,
// with the path of the field.
func cloudOf(config *spec.Cluster, options Options) (*cloud, error) {
	parts := config.ProviderSpecificConfig

	switch {
	case parts == nil:
		return nil, failure.New(failure.Invalid, "providerSpecificConfig is missing")
	case config.Provider == "aws" && parts.AWSConfig != nil:
		return awsCloud(parts.AWSConfig, options), nil
	case config.Provider == "azure" && parts.AzureConfig != nil:
		return azureCloud(parts.AzureConfig, config.WorkerCIDR), nil
	case config.Provider == "gcp" && parts.GCPConfig != nil && len(parts.GCPConfig.Zones) > 0:
		return gcpCloud(parts.GCPConfig, config.WorkerCIDR), nil
	case config.Provider == "openstack" && parts.OpenStackConfig != nil:
		return openStackCloud(parts.OpenStackConfig, config.WorkerCIDR), nil
	default:
		return nil, failure.New(failure.Invalid, "providerSpecificConfig has no part for provider %s", config.Provider)
	}
}

// typeMeta returns the type of a configuration of an extension.
func typeMeta(group, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: group + ".extensions.gardener.cloud/v1alpha1", Kind: kind}
}

// raw encodes the configuration of an extension; nil for nil.
func raw(config any) (*runtime.RawExtension, error) {
	if config == nil {
		return nil, nil
	}

	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", config, err)
	}

	return &runtime.RawExtension{Raw: text}, nil
}
