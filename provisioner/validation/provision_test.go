package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

const invalidOrder = "the order is invalid: "

func TestProvision(t *testing.T) {
	t.Parallel()

	const firstTen = "clusterConfig.administrators[0] must not be empty; clusterConfig.administrators[1] must not be empty; " +
		"clusterConfig.administrators[2] must not be empty; clusterConfig.administrators[3] must not be empty; " +
		"clusterConfig.administrators[4] must not be empty; clusterConfig.administrators[5] must not be empty; " +
		"clusterConfig.administrators[6] must not be empty; clusterConfig.administrators[7] must not be empty; " +
		"clusterConfig.administrators[8] must not be empty; clusterConfig.administrators[9] must not be empty; "

	cases := map[string]struct {
		reason string
		change func(input *spec.Runtime)
		want   string
	}{
		"Valid": {
			reason: "A valid order has no problems.",
			change: func(*spec.Runtime) {},
		},
		"NoRuntime": {
			reason: "An order that did not pass GraphQL may lack required objects: this must be reported as a problem and must not cause a panic.",
			change: func(input *spec.Runtime) { *input = spec.Runtime{} },
			want:   "runtimeInput is missing; clusterConfig.gardenerConfig is missing",
		},
		"RuntimeName": {
			reason: "The name of the runtime is required.",
			change: func(input *spec.Runtime) { input.Metadata.Name = "" },
			want:   "runtimeInput.name must not be empty",
		},
		"RuntimeNameLength": {
			reason: "The name of the runtime has a limit in characters, not bytes.",
			change: func(input *spec.Runtime) { input.Metadata.Name = strings.Repeat("ü", 257) },
			want:   "runtimeInput.name has more than 256 characters",
		},
		"Administrators": {
			reason: "Each invalid administrator is reported with its index.",
			change: func(input *spec.Runtime) {
				input.ClusterConfig.Administrators = []string{"jane@example.com", "", "a\nb", strings.Repeat("x", 257)}
			},
			want: "clusterConfig.administrators[1] must not be empty; " +
				"clusterConfig.administrators[2] contains a character that is not printable; " +
				"clusterConfig.administrators[3] has more than 256 characters",
		},
		"AdministratorsCount": {
			reason: "Too many administrators are one problem; they are not validated.",
			change: func(input *spec.Runtime) { input.ClusterConfig.Administrators = make([]string, 101) },
			want:   "clusterConfig.administrators has 101 entries, but at most 100 are allowed",
		},
		"Kyma": {
			reason: "The order of Kyma is validated too.",
			change: func(input *spec.Runtime) { input.KymaConfig = &spec.Kyma{Version: "1.24.0"} },
			want:   "kymaConfig.components must not be empty",
		},
		"OneProblemMore": {
			reason: "The number of the others is singular.",
			change: func(input *spec.Runtime) {
				input.ClusterConfig.Administrators = make([]string, 11)
			},
			want: firstTen + "and 1 more problem",
		},
		"ManyProblems": {
			reason: "An error lists at most ten problems and the number of the others.",
			change: func(input *spec.Runtime) {
				input.ClusterConfig.Administrators = make([]string, 12)
			},
			want: firstTen + "and 2 more problems",
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

// assertProblems compares the problems in the error with the wanted text. If want is empty, no error is expected.
func assertProblems(t *testing.T, reason, want string, err error) {
	t.Helper()

	var got string
	if err != nil {
		got = err.Error()

		if kind := failure.KindOf(err); kind != failure.Invalid {
			t.Errorf("%s\nerror kind: want %s, got %s", reason, failure.Invalid, kind)
		}
	}

	if want != "" {
		want = invalidOrder + want
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\nProvision(): -want +got:\n%s", reason, diff)
	}
}
