package validation_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

// kyma returns a valid order for Kyma, with shared configuration and with configuration for one component.
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
			reason: "Several components and the shared configuration may use the same key.",
			change: func(*spec.Kyma) {},
		},
		"NoVersion": {
			reason: "The version is required.",
			change: func(config *spec.Kyma) { config.Version = "" },
			want:   "kymaConfig.version must not be empty",
		},
		"NoComponents": {
			reason: "Components are required.",
			change: func(config *spec.Kyma) { config.Components = nil },
			want:   "kymaConfig.components must not be empty",
		},
		"TooManyComponents": {
			reason: "Too many components are one problem; they are not validated.",
			change: func(config *spec.Kyma) {
				config.Components = make([]*spec.Component, 201)
			},
			want: "kymaConfig.components has 201 entries, but at most 200 are allowed",
		},
		"NoAgent": {
			reason: "The runtime agent is required.",
			change: func(config *spec.Kyma) { config.Components = config.Components[:1] },
			want:   "kymaConfig.components must contain compass-runtime-agent",
		},
		"NullComponent": {
			reason: "The schema allows null, but an order must not contain it.",
			change: func(config *spec.Kyma) { config.Components[0] = nil },
			want:   "kymaConfig.components[0] must not be null",
		},
		"NoName": {
			reason: "A component needs a name.",
			change: func(config *spec.Kyma) { config.Components[0].Component = "" },
			want:   "kymaConfig.components[0].component must not be empty",
		},
		"SameComponent": {
			reason: "Two components with the same name are ambiguous.",
			change: func(config *spec.Kyma) {
				config.Components = append(config.Components, &spec.Component{Component: "istio", Namespace: "other"})
			},
			want: `kymaConfig.components[2].component repeats "istio"`,
		},
		"Namespace": {
			reason: "A name that the cluster would reject is rejected immediately.",
			change: func(config *spec.Kyma) { config.Components[0].Namespace = "Istio_System" },
			want:   `kymaConfig.components[0].namespace must be a name such as kyma-system, not "Istio_System"`,
		},
		"NoNamespace": {
			reason: "A component needs a namespace.",
			change: func(config *spec.Kyma) { config.Components[1].Namespace = "" },
			want:   `kymaConfig.components[1].namespace must be a name such as kyma-system, not ""`,
		},
		"EmptySource": {
			reason: "An empty source URL is ambiguous: omit it to install from the release.",
			change: func(config *spec.Kyma) { config.Components[1].SourceURL = new("") },
			want:   "kymaConfig.components[1].sourceURL must not be empty",
		},
		"NullEntry": {
			reason: "The schema allows null, but an order must not contain it.",
			change: func(config *spec.Kyma) { config.Configuration = append(config.Configuration, nil) },
			want:   "kymaConfig.configuration[1] must not be null",
		},
		"NoKey": {
			reason: "An entry needs a key.",
			change: func(config *spec.Kyma) { config.Components[0].Configuration[1].Key = "" },
			want:   "kymaConfig.components[0].configuration[1].key must not be empty",
		},
		"SameKey": {
			reason: "Two entries with the same key are ambiguous. The error contains no value, because values may be secret.",
			change: func(config *spec.Kyma) { config.Configuration = entries("domain", "domain") },
			want:   `kymaConfig.configuration[1].key repeats "domain"`,
		},
		"TooManyEntries": {
			reason: "Too many entries are one problem; they are not validated.",
			change: func(config *spec.Kyma) { config.Configuration = make([]*spec.Entry, 501) },
			want:   "kymaConfig.configuration has 501 entries, but at most 500 are allowed",
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
		"Valid": {reason: "The rules of an order apply to an upgrade.", config: kyma()},
		"Wrong": {
			reason: "The error names the upgrade.", config: wrong,
			want: "the upgrade is invalid: kymaConfig.version must not be empty",
		},
		"Nothing": {
			reason: "An upgrade that did not pass GraphQL may lack a required object.",
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
