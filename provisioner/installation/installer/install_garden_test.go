//go:build garden

package installer_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInstallUpgradeUninstall(t *testing.T) {
	c := newCluster(t)
	first := release{"a": configMap("one", "1") + configMap("two", "1"), "b": configMap("three", "1")}
	c.install(first, plan(c.part("a"), c.part("b")))
	for _, name := range []string{"one", "two", "three"} {
		if diff := cmp.Diff(map[string]string{"key": "1"}, c.data(c.namespace(), name)); diff != "" {
			t.Errorf("%s, -want +got:\n%s", name, diff)
		}
	}
	second := release{"a": configMap("one", "2"), "c": configMap("four", "2")}
	c.install(second, plan(c.part("a"), c.part("c")))
	for name, want := range map[string]map[string]string{"one": {"key": "2"}, "two": nil, "three": nil, "four": {"key": "2"}} {
		if diff := cmp.Diff(want, c.data(c.namespace(), name)); diff != "" {
			t.Errorf("%s after the upgrade, -want +got:\n%s", name, diff)
		}
	}
	if _, err := c.uninstalled(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "four"} {
		if got := c.data(c.namespace(), name); got != nil {
			t.Errorf("%s still exists: %v", name, got)
		}
	}
	if c.object("", "v1", "Namespace", "", c.namespace()) != nil {
		t.Error("the namespace still exists")
	}
	if c.object("", "v1", "Secret", "kube-system", "environment-broker-installation") != nil {
		t.Error("the inventory still exists")
	}
}
