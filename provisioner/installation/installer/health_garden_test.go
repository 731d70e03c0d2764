//go:build garden

package installer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/installation/installer"
)

func pods(kind, spec string) string {
	version := "apps/v1"
	if kind == "Job" {
		version = "batch/v1"
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: it}\nspec:\n  %s\n  template:\n    metadata: {labels: {app: it}}\n"+
		"    spec: {restartPolicy: %s, containers: [{name: c, image: i}]}\n---\n",
		version, kind, spec, map[bool]string{true: "Never", false: "Always"}[kind == "Job"])
}

func deployment() string {
	return pods("Deployment", "replicas: 2\n  selector: {matchLabels: {app: it}}")
}

// setStatus sets the status of an object, as its controller would.
func (c *cluster) setStatus(object *unstructured.Unstructured, status map[string]any) {
	c.Helper()
	object.Object["status"] = status
	if err := c.Status().Update(c.Context(), object); err != nil {
		c.Fatal(err)
	}
}

func available(ready int64) map[string]any {
	return map[string]any{
		"observedGeneration": int64(1), "replicas": int64(2), "updatedReplicas": int64(2), "readyReplicas": ready, "availableReplicas": ready,
		"conditions": []any{
			map[string]any{"type": "Available", "status": map[bool]string{true: "True", false: "False"}[ready == 2]},
			map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
		},
	}
}

func TestComponentWaitsUntilTheOneBeforeIsReady(t *testing.T) {
	c := newCluster(t)
	parts := release{"a": deployment(), "b": configMap("behind", "1")}
	wanted := plan(c.part("a"), c.part("b"))
	expect := func(reason, want string) {
		t.Helper()
		progress, err := c.step(parts, wanted)
		if err != nil || progress.Done || progress.Message != want {
			t.Errorf("%s: %+v, %v, want %q", reason, progress, err, want)
		}
		if c.data(c.namespace(), "behind") != nil {
			t.Errorf("%s: the second component is applied too early", reason)
		}
	}
	const where = "component 1 of 2 (a): "
	name := "Deployment " + c.namespace() + "/it"
	expect("no replica runs", where+"waiting for "+name+": Replicas: 0/2")
	c.setStatus(c.object("apps", "v1", "Deployment", c.namespace(), "it"), available(1))
	c.calls.take()
	expect("one of two replicas runs", where+"waiting for "+name+": Available: 1/2")
	if writes := c.calls.take(); writes > 0 {
		t.Errorf("waiting takes %d writes", writes)
	}
	if err := c.Delete(t.Context(), c.object("apps", "v1", "Deployment", c.namespace(), "it")); err != nil {
		t.Fatal(err)
	}
	expect("the Deployment was deleted", where+name+" is missing and will be applied again")
	expect("the Deployment exists again", where+"waiting for "+name+": Replicas: 0/2")
	c.setStatus(c.object("apps", "v1", "Deployment", c.namespace(), "it"), available(2))
	if got, want := c.install(parts, wanted), "release 1.0.0 is installed: 2 components"; got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
}

func TestUnhealthyObjects(t *testing.T) {
	job := pods("Job", "backoffLimit: 0")
	for name, tc := range map[string]struct {
		reason   string
		manifest string
		group    string
		kind     string
		status   map[string]any
		err      failure.Kind
		want     string
	}{
		"deployment": {
			"the image may still be pulled", deployment(), "apps", "Deployment",
			map[string]any{"observedGeneration": int64(1), "conditions": []any{
				map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
			}},
			"", "Deployment NAMESPACE/it is failing: Progress deadline exceeded",
		},
		"running job": {
			"later components may depend on the Job", job, "batch", "Job",
			map[string]any{"startTime": "2026-01-01T00:00:00Z", "active": int64(1)},
			"", "waiting for Job NAMESPACE/it: it is running",
		},
		"job": {
			"a failed Job is never retried", job, "batch", "Job",
			map[string]any{
				"startTime": "2026-01-01T00:00:00Z", "failed": int64(1),
				"conditions": []any{
					map[string]any{"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded"},
					map[string]any{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"},
				},
			},
			failure.Permanent, "Job NAMESPACE/it has failed: Job Failed. failed: 1/1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			parts, wanted := release{"a": tc.manifest}, plan(c.part("a"))
			if progress, err := c.step(parts, wanted); err != nil || progress.Done {
				t.Fatalf("%+v, %v", progress, err)
			}
			c.setStatus(c.object(tc.group, "v1", tc.kind, c.namespace(), "it"), tc.status)
			progress, err := c.step(parts, wanted)
			said := progress.Message
			if err != nil {
				said = failure.Of(err).ForOperators()
			}
			if want := strings.ReplaceAll(tc.want, "NAMESPACE", c.namespace()); !strings.Contains(said, want) {
				t.Errorf("%s: the message is %q, want %q", tc.reason, said, want)
			}
			if (err == nil) != (tc.err == "") || err != nil && failure.KindOf(err) != tc.err {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestOneCallIsBounded(t *testing.T) {
	c := newCluster(t)
	parts := release{"a": configMap("one", "1"), "b": configMap("two", "1")}
	wanted := plan(c.part("a"), c.part("b"))
	began, asked := time.Now(), 0
	slow := installer.New(installer.Options{Manifests: parts, Budget: time.Minute, Now: func() time.Time {
		asked++
		return began.Add(time.Duration(asked/3) * 2 * time.Minute)
	}})
	progress, err := slow.Install(t.Context(), c.target(), wanted)
	if want := (installation.Progress{Message: "component 2 of 2 (b): not started yet"}); err != nil || progress != want {
		t.Errorf("%+v, %v, want %+v", progress, err, want)
	}
	c.install(parts, wanted)
}

func TestSecondInstallationRepairs(t *testing.T) {
	c := newCluster(t)
	parts, wanted := release{"a": configMap("one", "1") + configMap("two", "1")}, plan(c.part("a"))
	c.install(parts, wanted)
	c.calls.take()
	c.install(parts, wanted)
	if writes := c.calls.take(); writes > 2 {
		t.Errorf("%d writes without a change; the inventory takes one for the component and one at the end", writes)
	}
	if err := c.Delete(t.Context(), c.object("", "v1", "ConfigMap", c.namespace(), "one")); err != nil {
		t.Fatal(err)
	}
	changed := c.object("", "v1", "ConfigMap", c.namespace(), "two")
	changed.Object["data"] = map[string]any{"key": "other", "more": "theirs"}
	if err := c.Update(t.Context(), changed, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	c.install(parts, wanted)
	if got := c.data(c.namespace(), "one"); got["key"] != "1" {
		t.Errorf("the deleted object is not restored: %v", got)
	}
	if got := c.data(c.namespace(), "two"); got["key"] != "1" || got["more"] != "theirs" {
		t.Errorf("the changed object is %v: our fields must be restored, and fields of other owners preserved", got)
	}
}
