package shoot

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// cloud is what differs between providers. To add one, write a function that returns its cloud and call it in cloudOf.
type cloud struct {
	// profile is the name of Gardener's cloud profile.
	profile string
	// nodes is the network that holds all nodes.
	nodes string
	// zones are the names of the zones that machines stand in.
	zones []string
	// exposureClass is the one of an order that names none, or empty.
	exposureClass string
	// infrastructure and controlPlane are read by the provider's extension of Gardener; worker is nil when there is nothing
	// to tell.
	infrastructure any
	controlPlane   any
	worker         any
}

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

// typeMeta names a kind of an extension of Gardener.
func typeMeta(group, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: group + ".extensions.gardener.cloud/v1alpha1", Kind: kind}
}

// raw packs what only an extension understands. It packs nothing for nil.
func raw(config any) (*runtime.RawExtension, error) {
	if config == nil {
		return nil, nil
	}

	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", config, err)
	}

	return &runtime.RawExtension{Raw: text}, nil
}
