package validation_test

import (
	"slices"
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

func gpuPool() *spec.WorkerPool {
	return &spec.WorkerPool{Name: "gpu", MachineType: "g6.xlarge", AutoScalerMin: 0, AutoScalerMax: 3, MaxSurge: 1}
}

func TestProvisionPools(t *testing.T) {
	t.Parallel()

	const label = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an ` +
		`alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`

	cases := map[string]struct {
		reason string
		change func(config *spec.Cluster, pool *spec.WorkerPool)
		want   string
	}{
		"Least": {
			reason: "The minimum may be 0, and the pool uses all zones by default.",
			change: func(*spec.Cluster, *spec.WorkerPool) {},
		},
		"OneZone": {
			reason: "A pool may use some of the zones.",
			change: func(_ *spec.Cluster, pool *spec.WorkerPool) {
				pool.Zones, pool.AutoScalerMax = []string{"2"}, 1
			},
		},
		"NameSyntax": {
			reason: "The name of the pool is part of the names of its machines.",
			change: func(_ *spec.Cluster, pool *spec.WorkerPool) { pool.Name = "GPU" },
			want:   `additionalWorkers[0].name "GPU" is not a valid worker pool name: ` + label,
		},
		"NameLength": {
			reason: "Gardener limits the length.",
			change: func(_ *spec.Cluster, pool *spec.WorkerPool) { pool.Name = "a123456789012345" },
			want:   "additionalWorkers[0].name has 16 characters, but at most 15 are allowed",
		},
		"NameOfTheFirst": {
			reason: "The name of the first pool is reserved.",
			change: func(_ *spec.Cluster, pool *spec.WorkerPool) { pool.Name = "cpu-worker-0" },
			want:   `additionalWorkers[0].name repeats "cpu-worker-0"`,
		},
		"NameTwice": {
			reason: "Names of pools are unique.",
			change: func(config *spec.Cluster, _ *spec.WorkerPool) {
				config.AdditionalWorkers = append(config.AdditionalWorkers, gpuPool())
			},
			want: `additionalWorkers[1].name repeats "gpu"`,
		},
		"Machines": {
			reason: "The rules of the first pool apply to all pools, and each problem names its pool.",
			change: func(_ *spec.Cluster, pool *spec.WorkerPool) {
				pool.MachineType, pool.MachineImageVersion, pool.DiskType = "", new("1.2.3"), new("gp3")
				pool.AutoScalerMin, pool.MaxSurge = 4, 0
			},
			want: "additionalWorkers[0].machineType must not be empty; " +
				"additionalWorkers[0].machineImageVersion requires machineImage; " +
				"additionalWorkers[0].diskType and volumeSizeGB must be set together; " +
				"additionalWorkers[0].autoScalerMin must not be more than autoScalerMax; " +
				"additionalWorkers[0].maxSurge and maxUnavailable must not both be 0, because no machine could then be replaced",
		},
		"OtherZone": {
			reason: "Only the zones of the cluster have networks.",
			change: func(_ *spec.Cluster, pool *spec.WorkerPool) { pool.Zones = []string{"mars-1a"} },
			want:   `additionalWorkers[0].zones[0] must be a zone of the cluster, not "mars-1a"`,
		},
		"FewMachines": {
			reason: "A zone would stay empty.",
			change: func(_ *spec.Cluster, pool *spec.WorkerPool) { pool.AutoScalerMax = 1 },
			want:   "additionalWorkers[0].autoScalerMax must be at least the number of zones, which is 2",
		},
		"TooMany": {
			reason: "The number of pools has a limit.",
			change: func(config *spec.Cluster, _ *spec.WorkerPool) {
				config.AdditionalWorkers = slices.Repeat(config.AdditionalWorkers, 51)
			},
			want: "additionalWorkers has 51 entries, but at most 50 are allowed",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			config := azureCluster()
			config.AdditionalWorkers = []*spec.WorkerPool{gpuPool()}
			tc.change(config, config.AdditionalWorkers[0])

			assertProblems(t, tc.reason, tc.want, validation.Provision(order(config), validation.Rules{Project: "kyma"}))
		})
	}
}

func TestUpgradePools(t *testing.T) {
	t.Parallel()

	in := func(zones ...string) *spec.WorkerPool {
		pool := gpuPool()
		pool.Zones = zones

		return pool
	}

	cases := map[string]struct {
		reason       string
		had, upgrade []*spec.WorkerPool
		want         int
		problem      string
	}{
		"LeftOut": {reason: "An upgrade without pools does not change them.", had: []*spec.WorkerPool{gpuPool()}, want: 1},
		"None": {
			reason: "An empty list removes them.", had: []*spec.WorkerPool{gpuPool()}, upgrade: []*spec.WorkerPool{}, want: 0,
		},
		"First": {reason: "An upgrade may add the first additional pool.", upgrade: []*spec.WorkerPool{gpuPool()}, want: 1},
		"MoreZones": {
			reason: "An upgrade may add a zone to a pool.",
			had:    []*spec.WorkerPool{in("1")}, upgrade: []*spec.WorkerPool{in("1", "2")}, want: 1,
		},
		"FewerZones": {
			reason: "Machines cannot move to another zone.",
			had:    []*spec.WorkerPool{gpuPool()}, upgrade: []*spec.WorkerPool{in("1")},
			problem: "additionalWorkers[0].zones must start with the current zones, in the same order: 1, 2",
		},
		"OtherZones": {
			reason: "Machines cannot move to another zone.",
			had:    []*spec.WorkerPool{in("1")}, upgrade: []*spec.WorkerPool{in("2")},
			problem: "additionalWorkers[0].zones must start with the current zones, in the same order: 1",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			cluster := present(azureCluster())
			cluster.GardenerConfig.AdditionalWorkers = tc.had

			got, err := validation.UpgradeShoot(cluster, spec.Upgrade{
				GardenerConfig: &spec.ClusterUpgrade{AdditionalWorkers: tc.upgrade},
			})

			want := ""
			if tc.problem != "" {
				want = "the upgrade is invalid: " + tc.problem
			}

			if (err == nil) != (want == "") || err != nil && (!failure.Is(err, failure.Invalid) || err.Error() != want) {
				t.Fatalf("%s\ngot %v, want %q", tc.reason, err, want)
			}

			if err == nil && len(got.GardenerConfig.AdditionalWorkers) != tc.want {
				t.Errorf("%s\ngot %d pools, want %d", tc.reason, len(got.GardenerConfig.AdditionalWorkers), tc.want)
			}
		})
	}
}
