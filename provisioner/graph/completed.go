package graph

import "github.com/environment-broker/environment-broker/provisioner/graph/model"

// completed returns the status with empty objects where clients of the former Provisioner never saw null. What it is given
// stays as it is.
func completed(status model.RuntimeStatus) *model.RuntimeStatus {
	status.LastOperationStatus = withLastError(status.LastOperationStatus)

	if status.RuntimeConfiguration != nil && status.RuntimeConfiguration.ClusterConfig != nil {
		configuration := *status.RuntimeConfiguration
		configuration.ClusterConfig = withOIDCConfig(configuration.ClusterConfig)
		status.RuntimeConfiguration = &configuration
	}

	return &status
}

func withLastError(status *model.OperationStatus) *model.OperationStatus {
	if status == nil || status.LastError != nil {
		return status
	}

	whole := *status
	whole.LastError = &model.LastError{}

	return &whole
}

func withOIDCConfig(config *model.GardenerConfig) *model.GardenerConfig {
	if config.OIDCConfig != nil {
		return config
	}

	whole := *config
	whole.OIDCConfig = &model.OIDCConfig{SigningAlgs: []string{}}

	return &whole
}
