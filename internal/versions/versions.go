// Package versions compares versions of Kubernetes and of machine images, and has the rule for upgrades of Kubernetes.
package versions

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Upgrade classifies the change of a cluster from one Kubernetes version to another.
type Upgrade int

const (
	// Possible is a change that Gardener accepts if it offers the version, including the change to the same version. Changes from or to
	// malformed versions are also Possible, because the syntax is checked elsewhere.
	Possible Upgrade = iota
	// Downgrade is a change to a lower version.
	Downgrade
	// Skipping is a change that skips a minor version, or changes the major version.
	Skipping
)

// UpgradeOf classifies a change from the present to the wanted Kubernetes version. next is the minor version that follows the present
// one, such as 1.35, or "" if a version is malformed. A wanted version without a patch number, such as 1.34, is not lower than its patch
// versions, because Gardener chooses the patch version.
func UpgradeOf(present, wanted string) (upgrade Upgrade, next string) {
	had, hadErr := semver.NewVersion(present)
	to, toErr := semver.NewVersion(wanted)

	if hadErr != nil || toErr != nil {
		return Possible, ""
	}

	switch {
	case isPatchOf(present, wanted):
	case to.LessThan(had):
		upgrade = Downgrade
	case to.Major() > had.Major() || to.Minor() > had.Minor()+1:
		upgrade = Skipping
	}

	return upgrade, fmt.Sprintf("%d.%d", had.Major(), had.Minor()+1)
}

// Newer returns the higher version. If the wanted version is the beginning of the present one, such as 1.34, Newer returns the present
// version, which Gardener has chosen for it. Newer returns the wanted version if either version is malformed.
func Newer(wanted, present string) string {
	if upgrade, _ := UpgradeOf(present, wanted); upgrade == Downgrade || isPatchOf(present, wanted) {
		return present
	}

	return wanted
}

// isPatchOf reports whether a version begins with another one: 1.34.2 is a patch version of 1.34.
func isPatchOf(version, minor string) bool { return strings.HasPrefix(version, minor+".") }
