package kyma

import (
	"context"
	"strings"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
)

// The prefixes of the keys in the ConfigMap with the versions. The ID of the subaccount or global account follows.
const (
	keySubAccount    = "SA_"
	keyGlobalAccount = "GA_"
)

// version returns the version for a new runtime: the subaccount's, else the global account's, else the default.
func (k Kyma) version(ctx context.Context, instance environment.Instance) (string, error) {
	if k.ControlPlane == nil || k.VersionsName == "" {
		return k.Version, nil
	}

	versions, err := k.ControlPlane.configMap(ctx, k.VersionsNamespace, k.VersionsName)
	if err != nil {
		return "", err
	}

	for _, key := range []string{keySubAccount + instance.SubAccountID, keyGlobalAccount + instance.GlobalAccountID} {
		version := strings.TrimSpace(versions[key])

		switch {
		case catalog.IsKymaVersion(version):
			return version, nil
		case version != "":
			return "", refused("the value of %s in the ConfigMap %s of the control plane is not a Kyma version", key, k.VersionsName)
		}
	}

	return k.Version, nil
}
