//go:build garden

package bundles_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// TestInstallers runs the tests that every Installer must pass, with both implementations.
func TestInstallers(t *testing.T) {
	on := startHub(t)

	for name, direct := range map[string]bool{"direct": true, "bundles": false} {
		for behaviour, test := range map[string]func(*cluster){
			"install, upgrade and uninstall": installUpgradeUninstall,
			"repair":                         repair,
			"kind and object":                kindAndObject,
			"definition in use":              definitionInUse,
			"shared namespace":               sharedNamespace,
			"foreign namespace":              foreignNamespace,
			"no other objects":               noOtherObjects,
			"rejected object":                rejectedObject,
			"collision":                      collision,
		} {
			t.Run(name+"/"+behaviour, func(t *testing.T) {
				if !direct { // All tests share an API server, and the direct Installer has one inventory on it.
					t.Parallel()
				}

				test(newCluster(t, on, direct))
			})
		}
	}
}

func (c *cluster) want(reason string, values map[string]string) {
	c.Helper()

	for name, want := range values {
		if got := c.value(name); got != want {
			c.Errorf("%s: %s is %q, want %q", reason, name, got, want)
		}
	}
}

func installUpgradeUninstall(c *cluster) {
	c.install(release{"a": configMap("one", "1") + configMap("two", "1"), "b": configMap("three", "1")}, c.part("a"), c.part("b"))
	c.want("installed", map[string]string{"one": "1", "two": "1", "three": "1"})
	c.install(release{"a": configMap("one", "2"), "c": configMap("four", "2")}, c.part("a"), c.part("c"))
	c.want("upgraded", map[string]string{"one": "2", "two": "", "three": "", "four": "2"})
	c.uninstall()
	c.want("uninstalled", map[string]string{"one": "", "four": ""})

	if c.object("", "v1", "Namespace", "", c.namespace()) != nil {
		c.Error("the namespace still exists")
	}

	if left := c.onHub(); len(left) > 0 {
		c.Errorf("on the hub: %v", left)
	}
}

func repair(c *cluster) {
	parts := release{"a": configMap("one", "1")}
	c.install(parts, c.part("a"))

	if err := c.Delete(c.Context(), c.object("", "v1", "ConfigMap", c.namespace(), "one")); err != nil {
		c.Fatal(err)
	}

	c.install(parts, c.part("a"))
	c.want("another operation repairs the installation", map[string]string{"one": "1"})
}

func kindAndObject(c *cluster) {
	c.install(release{"a": c.instance("Thing", "one") + c.definition("Thing")}, c.part("a"))

	if c.object(c.group(), "v1", "Thing", c.namespace(), "one") == nil {
		c.Error("the object does not exist")
	}
}

func definitionInUse(c *cluster) {
	c.install(release{"a": configMap("one", "1"), "b": c.definition("Thing")}, c.part("a"), c.part("b"))

	theirs := c.object("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "things."+c.group())
	if theirs == nil {
		c.Fatal("the definition does not exist")
	}

	c.create("Thing", "theirs")
	c.install(release{"a": configMap("one", "1")}, c.part("a"))

	if c.object(c.group(), "v1", "Thing", c.namespace(), "theirs") == nil {
		c.Error("the upgrade removed an object of a user")
	}
}

func sharedNamespace(c *cluster) {
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"${namespace}\", labels: {mesh: \"on\"}}\n---\n"
	parts := release{"a": configMap("one", "1"), "b": namespace + configMap("two", "1"), "c": configMap("three", "1")}

	for range 2 {
		c.install(parts, c.part("a"), c.part("b"), c.part("c"))

		if got := c.object("", "v1", "Namespace", "", c.namespace()).GetLabels()["mesh"]; got != "on" {
			c.Errorf("the label is %q", got)
		}
	}

	c.install(parts, c.part("c"))

	if left := c.object("", "v1", "Namespace", "", c.namespace()); left == nil || left.GetDeletionTimestamp() != nil {
		c.Error("the namespace was deleted with its component, although another component uses it")
	}
}

func foreignNamespace(c *cluster) {
	c.createNamespace()
	c.install(release{"a": configMap("one", "1")}, c.part("a"))
	c.uninstall()

	if left := c.object("", "v1", "Namespace", "", c.namespace()); left == nil || left.GetDeletionTimestamp() != nil {
		c.Error("the namespace of another owner was deleted")
	}

	c.want("uninstalled", map[string]string{"one": ""})
}

// noOtherObjects installs components that contain only a Namespace, only text that looks like one, and nothing.
func noOtherObjects(c *cluster) {
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + c.namespace() + "-b}\n---\n"
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata:\n  key: |\n    kind: Namespace\n"

	c.install(release{"a": text}, c.part("a"))
	c.want("installed", map[string]string{"one": "kind: Namespace\n"})
	c.install(release{"a": text, "b": namespace, "c": "# nothing\n", "d": configMap("two", "1")}, c.part("a"), c.part("b"), c.part("c"), c.part("d"))
	c.want("installed", map[string]string{"two": "1"})

	if c.object("", "v1", "Namespace", "", c.namespace()+"-b") == nil {
		c.Error("the namespace does not exist")
	}

	c.install(release{"d": configMap("two", "1")}, c.part("d"))
	c.want("upgraded", map[string]string{"one": "", "two": "1"})
}

// rejectedObject installs a component with an invalid object that contains a secret value, and then corrects it.
func rejectedObject(c *cluster) {
	second := c.part("b")
	second.Values, second.SecretKeys = map[string]string{"password": "hunter2_X"}, []string{"password"}

	const broken = "apiVersion: v1\nkind: Service\nmetadata: {name: one}\nspec: {ports: [{port: 80, name: \"${password}\"}]}\n"

	_, err := c.try(release{"a": configMap("one", "1"), "b": broken, "c": configMap("three", "1")}, c.part("a"), second, c.part("c"))

	text := failure.Of(err).ForOperators()
	if !failure.Is(err, failure.Permanent) || !strings.HasPrefix(text, "component 2 of 3 (b): the API server of the cluster rejects Service "+c.namespace()+"/one") {
		c.Errorf("got %v", err)
	}

	if !strings.Contains(text, "***") || strings.Contains(text, "hunter2") {
		c.Errorf("the secret value must be masked: %s", text)
	}

	c.want("the next component waits", map[string]string{"one": "1", "three": ""})
	c.install(release{"a": configMap("one", "1"), "b": configMap("two", "${password}"), "c": configMap("three", "1")}, c.part("a"), second, c.part("c"))
	c.want("the component was corrected", map[string]string{"two": "hunter2_X", "three": "1"})
}

// collision installs an object that already exists, and installs it again after the existing object was deleted.
func collision(c *cluster) {
	c.createNamespace()
	c.createConfigMap("one")

	parts := release{"a": configMap("one", "1")}

	_, err := c.try(parts, c.part("a"))
	if text := failure.Of(err).ForOperators(); !failure.Is(err, failure.Permanent) ||
		!strings.HasPrefix(text, "component 1 of 1 (a): ConfigMap "+c.namespace()+"/one exists already and was not installed by ") {
		c.Errorf("got %v", err)
	}

	if err := c.Delete(c.Context(), c.object("", "v1", "ConfigMap", c.namespace(), "one")); err != nil {
		c.Fatal(err)
	}

	c.install(parts, c.part("a"))
	c.want("another operation tries again at once", map[string]string{"one": "1"})
}
