package validation_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

// kyma is an order of Kyma that is valid.
func kyma() *spec.Kyma {
	return &spec.Kyma{
		Version: "1.24.0",
		Components: []*spec.Component{
			{Component: "istio", Namespace: "istio-system", Configuration: entries("replicas", "domain")},
			{Component: "compass-runtime-agent", Namespace: "kyma-system", SourceURL: new("https://example.com/agent")},
		},
		Configuration: entries("domain"),
	}
}

func entries(keys ...string) []*spec.Entry {
	list := make([]*spec.Entry, 0, len(keys))
	for _, key := range keys {
		list = append(list, &spec.Entry{Key: key, Value: "hush", Secret: new(true)})
	}

	return list
}

func TestKyma(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		change func(config *spec.Kyma)
		want   string
	}{
		"Valid": {
			reason: "A key may stand in several components, and beside that for all of them.",
			change: func(*spec.Kyma) {},
		},
		"NoVersion": {
			reason: "Nobody guesses a version.",
			change: func(config *spec.Kyma) { config.Version = "" },
			want:   "kymaConfig.version must not be empty",
		},
		"NoComponents": {
			reason: "Kyma without components is no Kyma.",
			change: func(config *spec.Kyma) { config.Components = nil },
			want:   "kymaConfig.components must not be empty",
		},
		"TooManyComponents": {
			reason: "The number of components has a limit, and only that is told.",
			change: func(config *spec.Kyma) {
				config.Components = make([]*spec.Component, 201)
			},
			want: "kymaConfig.components has 201 entries, at most 200 are allowed",
		},
		"NoAgent": {
			reason: "Without its agent a runtime could not be connected.",
			change: func(config *spec.Kyma) { config.Components = config.Components[:1] },
			want:   "kymaConfig.components must contain compass-runtime-agent",
		},
		"NullComponent": {
			reason: "The schema lets null through, nothing else does.",
			change: func(config *spec.Kyma) { config.Components[0] = nil },
			want:   "kymaConfig.components[0] must not be null",
		},
		"NoName": {
			reason: "A component is found by its name.",
			change: func(config *spec.Kyma) { config.Components[0].Component = "" },
			want:   "kymaConfig.components[0].component must not be empty",
		},
		"SameComponent": {
			reason: "Which of two components of one name is meant cannot be told.",
			change: func(config *spec.Kyma) {
				config.Components = append(config.Components, &spec.Component{Component: "istio", Namespace: "other"})
			},
			want: `kymaConfig.components[2].component repeats "istio"`,
		},
		"Namespace": {
			reason: "What the cluster would refuse after an hour is refused at once.",
			change: func(config *spec.Kyma) { config.Components[0].Namespace = "Istio_System" },
			want:   `kymaConfig.components[0].namespace must be a name such as kyma-system, not "Istio_System"`,
		},
		"NoNamespace": {
			reason: "A component has its place.",
			change: func(config *spec.Kyma) { config.Components[1].Namespace = "" },
			want:   `kymaConfig.components[1].namespace must be a name such as kyma-system, not ""`,
		},
		"EmptySource": {
			reason: "Whether an empty source is the release cannot be told.",
			change: func(config *spec.Kyma) { config.Components[1].SourceURL = new("") },
			want:   "kymaConfig.components[1].sourceURL must not be empty",
		},
		"NullEntry": {
			reason: "The schema lets null through, nothing else does.",
			change: func(config *spec.Kyma) { config.Configuration = append(config.Configuration, nil) },
			want:   "kymaConfig.configuration[1] must not be null",
		},
		"NoKey": {
			reason: "An entry without a key configures nothing.",
			change: func(config *spec.Kyma) { config.Components[0].Configuration[1].Key = "" },
			want:   "kymaConfig.components[0].configuration[1].key must not be empty",
		},
		"SameKey": {
			reason: "Which of two values is meant cannot be told; neither is shown, it may be secret.",
			change: func(config *spec.Kyma) { config.Configuration = entries("domain", "domain") },
			want:   `kymaConfig.configuration[1].key repeats "domain"`,
		},
		"TooManyEntries": {
			reason: "The number of entries has a limit, and only that is told.",
			change: func(config *spec.Kyma) { config.Configuration = make([]*spec.Entry, 501) },
			want:   "kymaConfig.configuration has 501 entries, at most 500 are allowed",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			input := order(azureCluster())
			input.KymaConfig = kyma()
			tc.change(input.KymaConfig)
			assertProblems(t, tc.reason, tc.want, validation.Provision(input, validation.Rules{Project: "kyma"}))
		})
	}
}

func TestUpgradeRuntime(t *testing.T) {
	t.Parallel()

	wrong := kyma()
	wrong.Version = ""

	for name, tc := range map[string]struct {
		reason string
		config *spec.Kyma
		want   string
	}{
		"Valid": {reason: "An upgrade obeys the same rules as an order.", config: kyma()},
		"Wrong": {
			reason: "They are told in the words of the upgrade.", config: wrong,
			want: "the upgrade is invalid: kymaConfig.version must not be empty",
		},
		"Nothing": {
			reason: "An upgrade from our own code may lack what GraphQL would insist on.",
			want:   "the upgrade is invalid: kymaConfig is missing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := validation.UpgradeRuntime(spec.KymaUpgrade{KymaConfig: tc.config})
			if (err == nil) != (tc.want == "") || err != nil && (err.Error() != tc.want || !failure.Is(err, failure.Invalid)) {
				t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
