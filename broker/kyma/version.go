package kyma

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// Keys in the ConfigMap with the versions. The ID of the subaccount or of the global account follows.
const (
	keySubAccount    = "SA_"
	keyGlobalAccount = "GA_"
)

// version returns the version for a new runtime: that of the subaccount, else that of the global account, else the default.
func (k Kyma) version(ctx context.Context, instance environment.Instance) (string, error) {
	if k.ControlPlane == nil || k.VersionsName == "" {
		return k.Version, nil
	}

	versions, err := k.ControlPlane.configMap(ctx, k.VersionsNamespace, k.VersionsName)
	if err != nil {
		return "", err
	}

	for _, key := range []string{keySubAccount + instance.SubAccountID, keyGlobalAccount + instance.GlobalAccountID} {
		if version := versions[key]; version != "" {
			return version, nil
		}
	}

	return k.Version, nil
}
