package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

func TestReleaseSources(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()

	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		reason string
		kyma   Kyma
		want   string // part of the error; empty for none
	}{
		"none":      {"Kyma is optional", Kyma{}, ""},
		"folder":    {"an empty folder is valid", Kyma{ReleasesPath: folder}, ""},
		"no folder": {"the folder must exist", Kyma{ReleasesPath: folder + "/none"}, "APP_KYMA_RELEASES_PATH"},
		"repository": {"the repository is not read at startup", Kyma{
			ReleasesRepository: "registry.example.com/team/releases", ReleasesCachePath: folder, ReleasesCalls: 1,
		}, ""},
		"no calls": {"the limit of calls must be positive", Kyma{ReleasesRepository: "r.example.com/r", ReleasesCachePath: folder}, "APP_KYMA_RELEASES_CALLS"},
		"both":     {"two sources are ambiguous", Kyma{ReleasesPath: folder, ReleasesRepository: "r.example.com/r"}, "not both"},
		"no cache": {"a repository needs a cache", Kyma{ReleasesRepository: "r.example.com/r"}, "APP_KYMA_RELEASES_CACHE_PATH"},
		"sources":  {"sources belong to a folder or a repository", Kyma{ReleasesPath: folder, SourcesCachePath: folder, SourcesNetworks: []string{"10.0.0.0/8"}}, ""},
		"networks": {"an address is no network", Kyma{ReleasesPath: folder, SourcesNetworks: []string{"10.0.0.1"}}, "APP_KYMA_SOURCES_NETWORKS"},
		"no CA":    {"the file must exist", Kyma{ReleasesPath: folder, SourcesCAFile: folder + "/none"}, "APP_KYMA_SOURCES_CA_FILE"},
		"empty CA": {"the file must have a certificate", Kyma{ReleasesPath: folder, SourcesCAFile: empty}, "APP_KYMA_SOURCES_CA_FILE: contains no certificate"},
		"no repository": {
			"the repository must be a valid reference", Kyma{ReleasesRepository: "https://", ReleasesCachePath: folder, ReleasesCalls: 1}, "APP_KYMA_RELEASES_REPOSITORY",
		},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			found, err := test.kyma.open(t.Context(), nil)

			switch {
			case test.want != "":
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: want an error with %q, got %v", test.reason, test.want, err)
				}
			case err != nil || found.known == nil || found.direct == nil:
				t.Errorf("%s: got %+v, %v", test.reason, found, err)
			}
		})
	}
}

func TestOrdersOfKymaWithoutReleases(t *testing.T) {
	t.Parallel()

	none, err := Kyma{}.open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}

	_, err = none.known.Plan(t.Context(), spec.Kyma{Version: "1.0.0"})
	for _, variable := range []string{"APP_KYMA_RELEASES_PATH", "APP_KYMA_RELEASES_REPOSITORY"} {
		if err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("the error does not name %s: %v", variable, err)
		}
	}
}
