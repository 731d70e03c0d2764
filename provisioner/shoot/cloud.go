package shoot

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// cloud is the provider-specific part of a Shoot. For a new provider, write a function that returns its cloud, and call it in
// cloudOf.
type cloud struct {
	// profile is the name of the cloud profile in Gardener.
	profile string
	// nodes is the address range of all nodes, as a CIDR.
	nodes string
	// zones are the names of the zones for machines; empty on Azure without zones.
	zones []string
	// exposureClass is the provider's default exposure class for the API server, or "".
	exposureClass string
	// The configurations for the provider's Gardener extension; worker may be nil.
	infrastructure, controlPlane, worker fields
	// withoutTokens reports that the order turns off the requirement of tokens on AWS.
	withoutTokens bool
}

// cloudOf returns the provider-specific part of the Shoot, or a failure.Invalid if the order has no configuration for its
// provider. Package validation rejects such orders earlier, with the path of the field.
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
		return nil, failure.New(failure.Invalid, "providerSpecificConfig has no configuration for provider %s", config.Provider)
	}
}

// fields is a JSON object. The configurations of extensions are written as literals: their Go types are in the repositories of
// the extensions, which have many dependencies.
type fields = map[string]any

// extensionConfig returns the configuration of a Gardener extension: the content together with the API version and kind.
func extensionConfig(group, kind string, content fields) fields {
	config := fields{"apiVersion": group + ".extensions.gardener.cloud/v1alpha1", "kind": kind}
	maps.Copy(config, content)

	return config
}

// raw encodes a configuration. It returns nil for nil.
func raw(config fields) (*runtime.RawExtension, error) {
	if config == nil {
		return nil, nil
	}

	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding a %s: %w", config["kind"], err)
	}

	return &runtime.RawExtension{Raw: text}, nil
}
