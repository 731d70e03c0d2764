package kymacompat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// These types declare the responses as clients of the Kyma Provisioner do. Nullable fields are pointers. Unknown enum
// values are errors.

type operationStatus struct {
	ID        *string        `json:"id"`
	Operation operationType  `json:"operation"`
	State     operationState `json:"state"`
	Message   *string        `json:"message"`
	RuntimeID *string        `json:"runtimeID"`
	LastError *lastError     `json:"lastError"`
}

type lastError struct {
	ErrMessage string `json:"errMessage"`
	Reason     string `json:"reason"`
	Component  string `json:"component"`
}

type runtimeStatus struct {
	LastOperationStatus     *operationStatus `json:"lastOperationStatus"`
	RuntimeConnectionStatus *struct {
		Status connectionStatus `json:"status"`
	} `json:"runtimeConnectionStatus"`
	RuntimeConfiguration *struct {
		Kubeconfig    *string        `json:"kubeconfig"`
		ClusterConfig *clusterConfig `json:"clusterConfig"`
		KymaConfig    *struct {
			Version *string `json:"version"`
		} `json:"kymaConfig"`
	} `json:"runtimeConfiguration"`
}

// clusterConfig is a decoded ClusterConfig. Specific is a pointer to the struct for the provider, such as *awsConfig.
type clusterConfig struct {
	settings

	Specific any
}

type settings struct {
	Name                                *string `json:"name"`
	KubernetesVersion                   *string `json:"kubernetesVersion"`
	TargetSecret                        *string `json:"targetSecret"`
	Provider                            *string `json:"provider"`
	Region                              *string `json:"region"`
	Seed                                *string `json:"seed"`
	MachineType                         *string `json:"machineType"`
	MachineImage                        *string `json:"machineImage"`
	MachineImageVersion                 *string `json:"machineImageVersion"`
	DiskType                            *string `json:"diskType"`
	VolumeSizeGB                        *int    `json:"volumeSizeGB"`
	WorkerCidr                          *string `json:"workerCidr"`
	AutoScalerMin                       *int    `json:"autoScalerMin"`
	AutoScalerMax                       *int    `json:"autoScalerMax"`
	MaxSurge                            *int    `json:"maxSurge"`
	MaxUnavailable                      *int    `json:"maxUnavailable"`
	Purpose                             *string `json:"purpose"`
	LicenceType                         *string `json:"licenceType"`
	EnableKubernetesVersionAutoUpdate   *bool   `json:"enableKubernetesVersionAutoUpdate"`
	EnableMachineImageVersionAutoUpdate *bool   `json:"enableMachineImageVersionAutoUpdate"`
	ExposureClassName                   *string `json:"exposureClassName"`
	ShootNetworkingFilterDisabled       *bool   `json:"shootNetworkingFilterDisabled"`
	ControlPlaneFailureTolerance        *string `json:"controlPlaneFailureTolerance"`
	EuAccess                            *bool   `json:"euAccess"`
	OIDCConfig                          *oidc   `json:"oidcConfig"`
	DNSConfig                           *struct {
		Domain    string `json:"domain"`
		Providers []*struct {
			DomainsInclude []string `json:"domainsInclude"`
			Primary        bool     `json:"primary"`
			SecretName     string   `json:"secretName"`
			Type           string   `json:"type"`
		} `json:"providers"`
	} `json:"dnsConfig"`
	ProviderSpecificConfig json.RawMessage `json:"providerSpecificConfig"`
}

type oidc struct {
	ClientID       string   `json:"clientID"`
	GroupsClaim    string   `json:"groupsClaim"`
	IssuerURL      string   `json:"issuerURL"`
	SigningAlgs    []string `json:"signingAlgs"`
	UsernameClaim  string   `json:"usernameClaim"`
	UsernamePrefix string   `json:"usernamePrefix"`
}

type awsConfig struct {
	VpcCidr  *string `json:"vpcCidr"`
	AwsZones []struct {
		Name         *string `json:"name"`
		PublicCidr   *string `json:"publicCidr"`
		InternalCidr *string `json:"internalCidr"`
		WorkerCidr   *string `json:"workerCidr"`
	} `json:"awsZones"`
}

type azureConfig struct {
	VnetCidr   *string `json:"vnetCidr"`
	AzureZones []struct {
		Name int    `json:"name"`
		Cidr string `json:"cidr"`
	} `json:"azureZones"`
	EnableNatGateway             *bool `json:"enableNatGateway"`
	IdleConnectionTimeoutMinutes *int  `json:"idleConnectionTimeoutMinutes"`
}

type gcpConfig struct {
	Zones []string `json:"zones"`
}

type openStackConfig struct {
	Zones                []string `json:"zones"`
	FloatingPoolName     string   `json:"floatingPoolName"`
	CloudProfileName     string   `json:"cloudProfileName"`
	LoadBalancerProvider string   `json:"loadBalancerProvider"`
}

func (c *clusterConfig) UnmarshalJSON(text []byte) error {
	if err := decodeStrict(text, &c.settings); err != nil {
		return err
	}

	if c.Provider == nil {
		return fmt.Errorf("the provider is missing in %s", text)
	}

	parts := map[string]any{"aws": &awsConfig{}, "azure": &azureConfig{}, "gcp": &gcpConfig{}, "openstack": &openStackConfig{}}

	c.Specific = parts[*c.Provider]
	if c.Specific == nil {
		return fmt.Errorf("unknown provider %q", *c.Provider)
	}

	return decodeStrict(c.ProviderSpecificConfig, c.Specific)
}

type (
	operationType    string
	operationState   string
	connectionStatus string
)

func (o *operationType) UnmarshalJSON(text []byte) error {
	return decodeEnum(text, (*string)(o), "Provision", "ProvisionNoInstall", "Upgrade", "UpgradeShoot", "Deprovision", "DeprovisionNoInstall",
		"ReconnectRuntime", "Hibernate")
}

func (o *operationState) UnmarshalJSON(text []byte) error {
	return decodeEnum(text, (*string)(o), "Pending", "InProgress", "Succeeded", "Failed")
}

func (c *connectionStatus) UnmarshalJSON(text []byte) error {
	return decodeEnum(text, (*string)(c), "Pending", "Connected", "Disconnected")
}

// decodeEnum decodes a JSON string that must be one of the given values.
func decodeEnum(text []byte, value *string, values ...string) error {
	if err := json.Unmarshal(text, value); err != nil {
		return err
	}

	if !slices.Contains(values, *value) {
		return fmt.Errorf("%q is none of %v", *value, values)
	}

	return nil
}

// decodeStrict decodes JSON and rejects unknown fields.
func decodeStrict(text []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()

	return decoder.Decode(value)
}
