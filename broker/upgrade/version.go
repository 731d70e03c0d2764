package upgrade

import (
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
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
	if isLower(wanted, current) {
		return failure.New(failure.Invalid, "The cluster has Kubernetes %s, and Kubernetes cannot be downgraded to %s.", current, wanted)
	}

	had, hadErr := semver.NewVersion(current)
	to, toErr := semver.NewVersion(wanted)

	if hadErr == nil && toErr == nil && (to.Major() != had.Major() || to.Minor() > had.Minor()+1) {
		return failure.New(failure.Invalid, "The cluster has Kubernetes %s, and an upgrade to %s would skip a minor version. Upgrade it to %d.%d first.",
			current, wanted, had.Major(), had.Minor()+1)
	}

	return nil
}

// isLower reports whether a version is lower than another one. Patch numbers are compared only if both versions have one. If a
// version is malformed, the result is false, because the Provisioner also checks the versions.
func isLower(version, than string) bool {
	one, oneErr := semver.NewVersion(version)
	other, otherErr := semver.NewVersion(than)

	switch {
	case oneErr != nil || otherErr != nil:
		return false
	case one.Major() != other.Major():
		return one.Major() < other.Major()
	case one.Minor() != other.Minor():
		return one.Minor() < other.Minor()
	default:
		return isPatch(version) && isPatch(than) && one.Patch() < other.Patch()
	}
}

// isPatch reports whether the version has a patch number.
func isPatch(version string) bool { return strings.Count(version, ".") == 2 }
