//go:build garden

package installer_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/clients/applier"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// TestCrashAtEachWrite simulates a crash before and after each write of an installation, an upgrade and a removal. The next call
// must reach the same result.
func TestCrashAtEachWrite(t *testing.T) {
	for _, done := range []bool{false, true} {
		t.Run(map[bool]string{false: "before", true: "after"}[done], func(t *testing.T) {
			c := newCluster(t)
			install := func(release release, names ...string) func() (installation.Progress, error) {
				var parts []installation.Component
				for _, name := range names {
					parts = append(parts, c.part(name))
				}
				return func() (installation.Progress, error) { return c.step(release, plan(parts...)) }
			}
			first := install(release{"a": configMap("one", "1") + configMap("two", "1")}, "a")
			second := install(release{"a": configMap("one", "2"), "b": c.definition("Thing") + c.instance("Thing", "three")}, "a", "b")
			uninstall := func() (installation.Progress, error) {
				return c.applier(nil).Uninstall(t.Context(), c.target())
			}
			n, died := 0, true
			for died {
				n++
				died = c.survives(n, done, first)
				if c.data(c.namespace(), "one")["key"] != "1" || c.data(c.namespace(), "two") == nil {
					t.Errorf("write %d: the objects differ from the installed release", n)
				}
				died = c.survives(n, done, second) || died
				if c.data(c.namespace(), "one")["key"] != "2" || c.data(c.namespace(), "two") != nil || !c.there("Thing", "three") {
					t.Errorf("write %d: the objects differ from the upgraded release", n)
				}
				died = c.survives(n, done, uninstall) || died
				c.nothingIsLeft()
			}
			if n < 8 {
				t.Errorf("only %d writes were tested", n-1)
			}
		})
	}
}

// survives makes the call crash at its n-th write, and then repeats the call until it is done. If done is true, the write still
// takes effect. survives reports whether there was an n-th write.
func (c *cluster) survives(n int, done bool, call func() (installation.Progress, error)) (died bool) {
	c.Helper()
	dead := c.dieAt(n, done)
	if _, err := until(again(call, func() bool { return !dead() })); err != nil && !failure.Is(err, failure.Transient) {
		c.Errorf("write %d: %v", n, err)
	}
	died = dead()
	c.calls.meddle(nil)
	if progress, err := until(again(call, always)); err != nil || !progress.Done {
		c.Errorf("after write %d: %+v, %v", n, progress, err)
	}
	return died
}

func (c *cluster) nothingIsLeft() {
	c.Helper()
	for _, kind := range []string{"NamespaceList", "ConfigMapList", "SecretList"} {
		found := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		if err := c.List(c.Context(), found); err != nil {
			c.Fatal(err)
		}
		for _, object := range found.Items {
			if object.GetLabels()[applier.LabelInstallation] == c.runtime || strings.HasPrefix(object.GetName(), applier.Inventory) {
				c.Errorf("%s %s still exists", object.GetKind(), object.GetName())
			}
		}
	}
}

// dieAt simulates a crash at the n-th write from now: all later requests fail. If done is true, the n-th write still takes
// effect.
func (c *cluster) dieAt(n int, done bool) (died func() bool) {
	count, dead := 0, false
	unavailable := func() *http.Response {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: io.NopCloser(strings.NewReader("dead")), Header: http.Header{}}
	}
	c.calls.meddle(func(request *http.Request) *http.Response {
		if dead {
			return unavailable()
		}
		if request.Method == http.MethodGet || request.URL.Query().Has("dryRun") {
			return nil
		}
		if count++; count < n {
			return nil
		}
		dead = true
		if done {
			return nil
		}
		return unavailable()
	})
	return func() bool { return dead }
}

// TestFrozenReplica pauses a replica after it has read the inventory, while another replica upgrades the release. The paused
// replica must fail without overwriting the upgrade.
func TestFrozenReplica(t *testing.T) {
	c := newCluster(t)
	wanted := plan(c.part("a"))
	c.install(release{"a": configMap("one", "1")}, wanted)
	other := &counter{}
	frozen := rest.CopyConfig(api)
	frozen.Wrap(other.count)
	upgraded := false
	other.meddle(func(request *http.Request) *http.Response {
		if request.Method != http.MethodGet && !upgraded {
			upgraded = true
			c.install(release{"a": configMap("one", "2")}, wanted)
		}
		return nil
	})
	_, err := c.applier(release{"a": configMap("one", "1")}).Install(t.Context(), installation.Target{Cluster: frozen, RuntimeID: c.runtime}, wanted)
	if !failure.Is(err, failure.Transient) {
		t.Errorf("the replica continues with a stale inventory: %v", err)
	}
	if c.data(c.namespace(), "one")["key"] != "2" {
		t.Error("the frozen replica has overwritten the upgrade")
	}
}

func TestUndefinedKind(t *testing.T) {
	c := newCluster(t)
	progress, err := c.step(release{"a": c.instance("Thing", "one")}, plan(c.part("a")))
	if want := "component 1 of 1 (a): the cluster does not serve the kind Thing of " + c.group() + "/v1 (yet): check that its " +
		"CustomResourceDefinition is installed and that the apiVersion is correct"; err != nil || progress.Message != want {
		t.Errorf("%+v, %v, want %q", progress, err, want)
	}
}

func TestImmutableField(t *testing.T) {
	c := newCluster(t)
	fixed := func(value, annotations string) release {
		return release{"a": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, annotations: {" + annotations + "}}\nimmutable: true\ndata: {key: \"" + value + "\"}\n"}
	}
	wanted := plan(c.part("a"))
	c.install(fixed("1", ""), wanted)
	_, err := c.step(fixed("2", ""), wanted)
	want := "component 1 of 1 (a): ConfigMap " + c.namespace() + "/one cannot be updated to the release, because a changed field is immutable"
	if !failure.Is(err, failure.Permanent) || !strings.HasPrefix(failure.Of(err).Text, want) || !strings.Contains(failure.Of(err).Text, applier.AnnotationRecreate) {
		t.Errorf("%v, want %q", err, want)
	}
	if c.data(c.namespace(), "one")["key"] != "1" {
		t.Error("the object was changed")
	}
	annotated := applier.AnnotationRecreate + `: "true"`
	progress, err := c.step(fixed("2", annotated), wanted)
	if want := "component 1 of 1 (a): ConfigMap " + c.namespace() + "/one is being recreated, because a changed field is immutable"; err != nil || progress.Message != want {
		t.Errorf("%+v, %v, want %q", progress, err, want)
	}
	c.install(fixed("2", annotated), wanted)
	if c.data(c.namespace(), "one")["key"] != "2" {
		t.Error("the object was not created again")
	}
}

func TestInvalidObjectIsNotRecreated(t *testing.T) {
	c := newCluster(t)
	port := func(number string) release {
		return release{"a": "apiVersion: v1\nkind: Service\nmetadata: {name: one, annotations: {" + applier.AnnotationRecreate + ": \"true\"}}\n" +
			"spec: {ports: [{port: " + number + "}]}\n"}
	}
	c.install(port("80"), plan(c.part("a")))
	before := c.object("", "v1", "Service", c.namespace(), "one").GetUID()
	_, err := c.step(port("99999"), plan(c.part("a")))
	if !failure.Is(err, failure.Permanent) || !strings.HasSuffix(failure.Of(err).Text, "rejects Service "+c.namespace()+"/one") {
		t.Errorf("%v", err)
	}
	if after := c.object("", "v1", "Service", c.namespace(), "one"); after == nil || after.GetUID() != before {
		t.Error("a working object was deleted for an invalid one")
	}
}

func TestErrorsContainNoSecrets(t *testing.T) {
	c := newCluster(t)
	component := c.part("a")
	component.Values, component.SecretKeys = map[string]string{"password": "hunter2_\"X\""}, []string{"password"}
	_, err := c.step(release{"a": "apiVersion: v1\nkind: Service\nmetadata: {name: one}\nspec: {ports: [{port: 80, name: \"${password}\"}]}\n"}, plan(component))
	if !failure.Is(err, failure.Permanent) || !strings.Contains(err.Error(), "***") {
		t.Errorf("unexpected error: %v", err)
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if text := fmt.Sprintf("%+v", cause); strings.Contains(text, "hunter2") {
			t.Errorf("the text contains the secret: %s", text)
		}
	}
}

// TestMessagesContainNoSecrets simulates a controller that quotes a secret value in a condition. The message to users must mask
// the value.
func TestMessagesContainNoSecrets(t *testing.T) {
	for kind, encode := range map[string]func(string) string{
		"plain": func(value string) string { return value }, "base64": func(value string) string {
			return base64.StdEncoding.EncodeToString([]byte(value))
		},
	} {
		c := newCluster(t)
		component := c.part("b")
		component.Values, component.SecretKeys = map[string]string{"password": "hunter2_\"X\""}, []string{"password"}
		parts := release{"a": c.definition("Thing"), "b": c.instance("Thing", "one") + "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n" +
			"stringData: {password: \"${password}\"}\n"}
		c.install(parts, plan(c.part("a"), component))
		object := c.object(c.group(), "v1", "Thing", c.namespace(), "one")
		object.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": "False", "reason": "Refused", "message": "the password " + encode("hunter2_\"X\"") + " is refused",
		}}}
		if err := c.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		component.Values["changed"] = "a new digest"
		progress, err := c.step(parts, plan(c.part("a"), component))
		if want := "the password *** is refused"; err != nil || !strings.Contains(progress.Message, want) {
			t.Errorf("%s: the message is %q, %v, want %q", kind, progress.Message, err, want)
		}
	}
}

func TestNamespaceBeingDeleted(t *testing.T) {
	c := newCluster(t)
	parts, wanted := release{"a": configMap("one", "1")}, plan(c.part("a"))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace()}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), namespace); err != nil { // finishNamespaces does not finalize a namespace without the label.
		t.Fatal(err)
	}
	progress, err := c.step(parts, wanted)
	if want := "component 1 of 1 (a): waiting until the namespace of an object is deleted"; err != nil || progress.Message != want {
		t.Errorf("%+v, %v, want %q", progress, err, want)
	}
	c.finalize(namespace.Name)
	c.install(parts, wanted)
}

func TestUnreachableCluster(t *testing.T) {
	c := newCluster(t)
	c.install(release{"a": configMap("one", "1")}, plan(c.part("a")))
	for name, tc := range map[string]struct {
		reason string
		code   int
		body   string
		want   string
	}{
		"nothing":   {"a proxy responds instead", http.StatusBadGateway, "<html>", "the inventory of the installation cannot be read: "},
		"forbidden": {"the roles of a new cluster are not available immediately", http.StatusForbidden, "", "the inventory of the installation cannot be read: "},
	} {
		t.Run(name, func(t *testing.T) {
			c.calls.meddle(func(*http.Request) *http.Response {
				header := http.Header{"Content-Type": {"application/json"}}
				return &http.Response{StatusCode: tc.code, Body: io.NopCloser(strings.NewReader(tc.body)), Header: header}
			})
			defer c.calls.meddle(nil)
			_, err := c.step(release{}, plan())
			if !failure.Is(err, failure.Transient) || !strings.Contains(failure.Of(err).Text, tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
