package upgrade

import (
	"regexp"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/versions"
)

// kubernetesVersions matches a patch version, or a minor version whose patch version Gardener chooses. No number has more than
// four digits.
var kubernetesVersions = regexp.MustCompile(`^[1-9][0-9]{0,3}\.(0|[1-9][0-9]{0,3})(\.(0|[1-9][0-9]{0,3}))?$`)

// CheckVersion returns an error of kind Invalid if the version is malformed for upgrades of the given kind. An empty version is
// valid.
func CheckVersion(kind, version string) error {
	switch {
	case version == "":
		return nil
	case kind == environment.KindUpgradeKyma && !catalog.IsKymaVersion(version):
		return failure.New(failure.Invalid,
			"The version must be a Kyma version: at most 128 letters, digits, dots, hyphens and underscores.")
	case kind == environment.KindUpgradeCluster && !kubernetesVersions.MatchString(version):
		return failure.New(failure.Invalid, "The version must be a Kubernetes version such as 1.34 or 1.34.2.")
	default:
		return nil
	}
}

// checkKubernetes returns an error of kind Invalid if the wanted version is lower than the current one, or skips a minor version. Neither
// the Provisioner nor Gardener accepts such an upgrade of any cluster. Gardener checks whether it offers the version.
func checkKubernetes(current, wanted string) error {
	switch upgrade, next := versions.UpgradeOf(current, wanted); upgrade {
	case versions.Downgrade:
		return failure.New(failure.Invalid, "The cluster has Kubernetes %s, and Kubernetes cannot be downgraded to %s.", current, wanted)
	case versions.Skipping:
		return failure.New(failure.Invalid, "The cluster has Kubernetes %s, and an upgrade to %s would skip a minor version. Upgrade it to %s first.",
			current, wanted, next)
	default:
		return nil
	}
}
