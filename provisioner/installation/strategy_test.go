package installation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

func entry(key, value string) *spec.Entry {
	return &spec.Entry{Key: key, Value: value}
}

func order(strategy spec.ConflictStrategy, configuration []*spec.Entry, components ...*spec.Component) spec.Kyma {
	wanted := spec.Kyma{Version: "2.0.0", Configuration: configuration, Components: components}
	if strategy != "" {
		wanted.ConflictStrategy = &strategy
	}
	return wanted
}

func component(name string, strategy spec.ConflictStrategy, configuration ...*spec.Entry) *spec.Component {
	wanted := &spec.Component{Component: name, Namespace: "n", Configuration: configuration}
	if strategy != "" {
		wanted.ConflictStrategy = &strategy
	}
	return wanted
}

type entries = []*spec.Entry

func TestUpgraded(t *testing.T) {
	merge, replace := spec.ConflictStrategyMerge, spec.ConflictStrategyReplace
	former := order("", entries{entry("a", "1"), entry("b", "1")}, component("x", "", entry("c", "1"), entry("d", "1")))
	for name, tc := range map[string]struct {
		reason string
		wanted spec.Kyma
		want   spec.Kyma
	}{
		"nothing said": {
			"existing configuration is kept, because clients send changes only",
			order("", nil, component("x", "")),
			order("", former.Configuration, component("x", "", entry("c", "1"), entry("d", "1"))),
		},
		"merge": {
			"new values override old ones",
			order(merge, entries{entry("b", "2")}, component("x", merge, entry("d", "2"))),
			order(merge, entries{entry("a", "1"), entry("b", "2")}, component("x", merge, entry("c", "1"), entry("d", "2"))),
		},
		"replace": {
			"old values are dropped on both levels",
			order(replace, entries{entry("b", "2")}, component("x", replace, entry("d", "2"))),
			order(replace, entries{entry("b", "2")}, component("x", replace, entry("d", "2"))),
		},
		"replace all by nothing": {
			"replacing by nothing removes configuration", order(replace, nil, component("x", replace)), order(replace, nil, component("x", replace)),
		},
		"one level": {
			"the levels are independent",
			order(replace, nil, component("x", "", entry("d", "2"))),
			order(replace, nil, component("x", "", entry("c", "1"), entry("d", "2"))),
		},
		"new component": {
			"a new component has no old values", order(merge, nil, component("y", merge, entry("c", "2"))),
			order(merge, former.Configuration, component("y", merge, entry("c", "2"))),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, installation.Upgraded(former, tc.wanted)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	untouched := order("", entries{entry("a", "1"), entry("b", "1")}, component("x", "", entry("c", "1"), entry("d", "1")))
	if diff := cmp.Diff(untouched, former); diff != "" {
		t.Errorf("the previous order was changed, -want +got:\n%s", diff)
	}
}
