package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

const cannot = "the order is invalid: "

func TestProvision(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		change func(input *spec.Runtime)
		want   string
	}{
		"Valid": {
			reason: "An order that Gardener would take is let through.",
			change: func(*spec.Runtime) {},
		},
		"NoRuntime": {
			reason: "An order from our own code may lack what GraphQL would insist on; that is told and is no panic.",
			change: func(input *spec.Runtime) { *input = spec.Runtime{} },
			want:   "runtimeInput is missing; clusterConfig.gardenerConfig is missing",
		},
		"RuntimeName": {
			reason: "The name of the runtime is needed.",
			change: func(input *spec.Runtime) { input.Metadata.Name = "" },
			want:   "runtimeInput.name must not be empty",
		},
		"RuntimeNameLength": {
			reason: "The name of the runtime has a limit, counted in characters and not in bytes.",
			change: func(input *spec.Runtime) { input.Metadata.Name = strings.Repeat("ü", 257) },
			want:   "runtimeInput.name has more than 256 characters",
		},
		"Administrators": {
			reason: "Each administrator that cannot be bound is named by its place.",
			change: func(input *spec.Runtime) {
				input.ClusterConfig.Administrators = []string{"jane@example.com", "", "a\nb", strings.Repeat("x", 257)}
			},
			want: "clusterConfig.administrators[1] must not be empty; " +
				"clusterConfig.administrators[2] contains a character that is not printable; " +
				"clusterConfig.administrators[3] has more than 256 characters",
		},
		"AdministratorsCount": {
			reason: "The number of administrators has a limit, and only that is told.",
			change: func(input *spec.Runtime) { input.ClusterConfig.Administrators = make([]string, 101) },
			want:   "clusterConfig.administrators has 101 entries, at most 100 are allowed",
		},
		"Kyma": {
			reason: "An order of Kyma is looked at too.",
			change: func(input *spec.Runtime) { input.KymaConfig = &spec.Kyma{Version: "1.24.0"} },
			want:   "kymaConfig.components must not be empty",
		},
		"ManyProblems": {
			reason: "An error tells ten problems and counts the rest, so that no input makes it endless.",
			change: func(input *spec.Runtime) {
				input.ClusterConfig.Administrators = make([]string, 12)
			},
			want: "clusterConfig.administrators[0] must not be empty; clusterConfig.administrators[1] must not be empty; " +
				"clusterConfig.administrators[2] must not be empty; clusterConfig.administrators[3] must not be empty; " +
				"clusterConfig.administrators[4] must not be empty; clusterConfig.administrators[5] must not be empty; " +
				"clusterConfig.administrators[6] must not be empty; clusterConfig.administrators[7] must not be empty; " +
				"clusterConfig.administrators[8] must not be empty; clusterConfig.administrators[9] must not be empty; " +
				"and 2 more problems",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			input := order(azureCluster())
			tc.change(&input)
			assertProblems(t, tc.reason, tc.want, validation.Provision(input, validation.Rules{Project: "kyma"}))
		})
	}
}

func order(cluster *spec.Cluster) spec.Runtime {
	return spec.Runtime{
		Metadata:      &spec.Metadata{Name: "my runtime"},
		ClusterConfig: &spec.ClusterConfig{GardenerConfig: cluster, Administrators: []string{"jane@example.com"}},
	}
}

// assertProblems compares the text of an error, without its title, with the wanted one.
func assertProblems(t *testing.T, reason, want string, err error) {
	t.Helper()

	var got string
	if err != nil {
		got = err.Error()

		if kind := failure.KindOf(err); kind != failure.Invalid {
			t.Errorf("%s\nkind of the error: want %s, got %s", reason, failure.Invalid, kind)
		}
	}

	if want != "" {
		want = cannot + want
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\nProvision(): -want +got:\n%s", reason, diff)
	}
}
