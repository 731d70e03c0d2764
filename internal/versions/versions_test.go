package versions_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/versions"
)

func TestUpgradeOf(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		reason, present, wanted string
		want                    versions.Upgrade
		next                    string
	}{
		"same":                {"nothing changes", "1.34.2", "1.34.2", versions.Possible, "1.35"},
		"next patch":          {"patches may change", "1.34.2", "1.34.9", versions.Possible, "1.35"},
		"next minor":          {"one minor version is not skipped", "1.34.2", "1.35.0", versions.Possible, "1.35"},
		"minor of the patch":  {"Gardener chooses the patch version", "1.34.2", "1.34", versions.Possible, "1.35"},
		"patch of the minor":  {"the present patch version is unknown", "1.34", "1.34.0", versions.Possible, "1.35"},
		"same digits":         {"1.3 is not the minor version of 1.34.2", "1.34.2", "1.3", versions.Downgrade, "1.35"},
		"lower patch":         {"patches cannot be downgraded", "1.34.2", "1.34.1", versions.Downgrade, "1.35"},
		"lower minor":         {"minor versions cannot be downgraded", "1.34.2", "1.33", versions.Downgrade, "1.35"},
		"lower major":         {"major versions cannot be downgraded", "2.1", "1.34", versions.Downgrade, "2.2"},
		"numbers":             {"versions are compared as numbers", "1.9.2", "1.10.1", versions.Possible, "1.10"},
		"skipped minor":       {"Gardener rejects it", "1.34.2", "1.36", versions.Skipping, "1.35"},
		"next major":          {"Gardener rejects it", "1.34.2", "2.0.0", versions.Skipping, "1.35"},
		"malformed present":   {"its syntax is checked elsewhere", "latest", "1.34", versions.Possible, ""},
		"malformed wanted":    {"its syntax is checked elsewhere", "1.34", "latest", versions.Possible, ""},
		"no present version":  {"the version of the cluster is unknown", "", "1.34", versions.Possible, ""},
		"no requested change": {"the version stays", "1.34", "", versions.Possible, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got, next := versions.UpgradeOf(c.present, c.wanted); got != c.want || next != c.next {
				t.Errorf("%s: UpgradeOf(%q, %q) = %d, %q, want %d, %q", c.reason, c.present, c.wanted, got, next, c.want, c.next)
			}
		})
	}
}

func TestNewer(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct{ reason, wanted, present, want string }{
		"raised":    {"Gardener has raised the version, and rejects lower ones", "1.34.1", "1.34.2", "1.34.2"},
		"ordered":   {"the order asks for a higher version", "1.35", "1.34.2", "1.35"},
		"chosen":    {"Gardener has chosen the patch version", "1.34", "1.34.2", "1.34.2"},
		"numbers":   {"versions are compared as numbers", "15.10.0", "15.9.3", "15.10.0"},
		"malformed": {"versions without an order are those of the order", "latest", "15.9.3", "latest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := versions.Newer(c.wanted, c.present); got != c.want {
				t.Errorf("%s: Newer(%q, %q) = %q, want %q", c.reason, c.wanted, c.present, got, c.want)
			}
		})
	}
}
