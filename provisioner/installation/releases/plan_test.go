package releases_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/installation/releases"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// wants returns an order for the given components, with a value for the key "domain" that applies to all of them.
func wants(components ...*spec.Component) spec.Kyma {
	return spec.Kyma{Version: "1.0.0", Components: components, Configuration: []*spec.Entry{value("domain", "d")}}
}

func named(name string, configuration ...*spec.Entry) *spec.Component {
	return &spec.Component{Component: name, Configuration: configuration}
}

func value(key, value string) *spec.Entry {
	return &spec.Entry{Key: key, Value: value}
}

func hidden(key, text string) *spec.Entry {
	secret := true
	return &spec.Entry{Key: key, Value: text, Secret: &secret}
}

func names(plan installation.Plan) string {
	var found []string
	for _, component := range plan.Components {
		found = append(found, component.Name)
	}
	return strings.Join(found, " ")
}

func TestOrderOfThePlan(t *testing.T) {
	password := value("password", "p")
	for name, tc := range map[string]struct {
		reason string
		order  spec.Kyma
		want   string
	}{
		"minimal":      {"required components need not be named", wants(), "base agent"},
		"named":        {"naming a required component changes nothing", wants(named("base"), named("agent")), "base agent"},
		"partly named": {"named components come after the others", wants(named("agent")), "base agent"},
		"wrong order":  {"dependencies come first, regardless of the sequence in the order", wants(named("agent"), named("base")), "base agent"},
		"optional":     {"the order adds optional components", wants(named("agent"), named("lone")), "base agent lone"},
		"stable": {"without dependencies, components have the sequence of the order", wants(named("lone"), named("base"),
			named("agent")), "lone base agent"},
		"deep": {
			"an optional component follows its dependency directly; the others keep their positions",
			wants(named("more"), named("lone"), named("extra", password), named("base"), named("agent")), "lone base extra more agent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := releases.New(releases.Folder{FS: sample()}).Plan(t.Context(), tc.order)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, names(plan)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestInvalidOrders(t *testing.T) {
	source, empty := "https://example.com/c.tgz#sha256="+strings.Repeat("0", 64), ""
	from := func(url *string) *spec.Component {
		return &spec.Component{Component: "lone", SourceURL: url}
	}
	for name, tc := range map[string]struct {
		reason string
		order  spec.Kyma
		want   string
	}{
		"unknown component": {
			"the name may be misspelled", wants(named("base"), named("extar")),
			`kymaConfig.components[1].component: release 1.0.0 has no component "extar"; it has base, agent, extra, more, lone`,
		},
		"missing dependency": {
			"optional dependencies are not added silently", wants(named("more")),
			`kymaConfig.components[0].component: "more" needs "extra", which the order does not contain`,
		},
		"twice": {
			"the configuration would be ambiguous", wants(named("lone"), named("lone")),
			`kymaConfig.components[1].component: repeats "lone"`,
		},
		"null": {"the schema allows it", wants(nil), `kymaConfig.components[0]: is null`},
		"source": {
			"ignoring it would install something else", wants(from(&source)),
			`kymaConfig.components[0].sourceURL: this Provisioner installs only components of its releases: ` +
				`omit sourceURL, or ask an operator to set APP_KYMA_SOURCES_CACHE_PATH`,
		},
		"empty source": {"an empty URL is the same as none", wants(from(&empty)), ""},
		"missing value": {
			"the value has no default", wants(named("extra")),
			`kymaConfig.configuration: component "extra" needs a value for "password"`,
		},
		"unknown value": {
			"the value would have no effect", wants(named("base", value("domain", "x"), value("domian", "x"))),
			`kymaConfig.components[0].configuration[1]: component "base" has no configuration key "domian"; its keys are: domain, size`,
		},
		"no values":  {"the component has none", wants(named("lone", value("size", "x"))), `component "lone" accepts no configuration`},
		"null value": {"the schema allows it", wants(named("base", nil)), `kymaConfig.components[0].configuration[0]: component "base" has no configuration key ""`},
		"all at once": {
			"one error lists all problems", wants(named("extar"), named("more")),
			`"extar"; it has base, agent, extra, more, lone; kymaConfig.components[1]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := releases.New(releases.Folder{FS: sample()}).Plan(t.Context(), tc.order)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want == "":
			case !failure.Is(err, failure.Invalid) || !strings.Contains(failure.Of(err).Text, tc.want):
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			case len(plan.Components) > 0:
				t.Errorf("%s: the invalid order has a plan", tc.reason)
			}
		})
	}
}

func TestValuesOfThePlan(t *testing.T) {
	production, evaluation := spec.ProfileProduction, spec.ProfileEvaluation
	with := func(order spec.Kyma, profile *spec.Profile, configuration ...*spec.Entry) spec.Kyma {
		order.Profile, order.Configuration = profile, append(order.Configuration, configuration...)
		return order
	}
	for name, tc := range map[string]struct {
		reason  string
		order   spec.Kyma
		want    map[string]string
		secrets []string
	}{
		"defaults":      {"the release has defaults", wants(), map[string]string{"size": "small", "domain": "d"}, nil},
		"profile":       {"a profile overrides defaults", with(wants(), &production), map[string]string{"size": "big", "domain": "d"}, nil},
		"other profile": {"an unknown profile changes nothing", with(wants(), &evaluation), map[string]string{"size": "small", "domain": "d"}, nil},
		"for all": {
			"values for all components override the profile", with(wants(), &production, value("size", "huge")),
			map[string]string{"size": "huge", "domain": "d"},
			nil,
		},
		"for one": {"values of a component override those for all", with(wants(named("base", value("size", "odd"))), nil,
			value("size", "huge")), map[string]string{"size": "odd", "domain": "d"}, nil},
		"for others": {
			"a value for all may be meant for other components or releases", with(wants(), nil, value("global.x", "y")),
			map[string]string{"size": "small", "domain": "d"},
			nil,
		},
		"null for all": {"the schema allows it", with(wants(), nil, nil), map[string]string{"size": "small", "domain": "d"}, nil},
		"secret":       {"secret values are marked", with(wants(), nil, hidden("size", "s")), map[string]string{"size": "s", "domain": "d"}, []string{"size"}},
		"not secret any more": {
			"only the effective value matters", with(wants(named("base", value("size", "odd"))), nil, hidden("size", "s")),
			map[string]string{"size": "odd", "domain": "d"},
			[]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := releases.New(releases.Folder{FS: sample()}).Plan(t.Context(), tc.order)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			base := plan.Components[0]
			if diff := cmp.Diff(tc.want, base.Values); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.secrets, base.SecretKeys); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestComponentsOfAPlan(t *testing.T) {
	order := wants(&spec.Component{Component: "extra", Namespace: "elsewhere", Configuration: []*spec.Entry{hidden("password", "hunter2")}})
	evaluation := spec.ProfileEvaluation
	order.Profile = &evaluation
	plan, err := releases.New(releases.Folder{FS: sample()}).Plan(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	want := installation.Plan{Version: "1.0.0", Profile: "Evaluation", Components: []installation.Component{
		{Name: "base", Namespace: "system", Source: "1.0.0/base", Values: map[string]string{"size": "small", "domain": "d"}},
		{Name: "agent", Namespace: "agents", Source: "1.0.0/agent", DependsOn: []string{"base"}, Values: map[string]string{}},
		{
			Name: "extra", Namespace: "elsewhere", Source: "1.0.0/extra", DependsOn: []string{"base"}, Optional: true,
			Values: map[string]string{"size": "tiny", "password": "hunter2"}, SecretKeys: []string{"password"},
		},
	}}
	if diff := cmp.Diff(want, plan); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if printed := fmt.Sprintf(verb, plan); strings.Contains(printed, "hunter2") {
			t.Errorf("a plan printed with %s shows a secret: %s", verb, printed)
		}
	}
}
