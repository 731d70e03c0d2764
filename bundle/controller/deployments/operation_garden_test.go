//go:build garden

package deployments_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/controller/deployments"
	"github.com/environment-broker/environment-broker/bundle/format"
)

// TestRepair changes and deletes installed objects (regression 12).
func TestRepair(t *testing.T) {
	f := newFixture(t)
	f.create(f.content("1", f.configMap("one", "1")))
	f.settle()

	key := client.ObjectKey{Namespace: "default", Name: f.name + "-one"}

	for name, tamper := range map[string]func(*corev1.ConfigMap) error{
		"edited":         func(found *corev1.ConfigMap) error { found.Data["key"] = "2"; return f.Update(t.Context(), found) },
		"deleted":        func(found *corev1.ConfigMap) error { return f.Delete(t.Context(), found) },
		"label stripped": func(found *corev1.ConfigMap) error { found.Labels = nil; return f.Update(t.Context(), found) },
	} {
		found := &corev1.ConfigMap{}
		if err := f.Get(t.Context(), key, found); err != nil {
			t.Fatal(err)
		}

		if err := tamper(found); err != nil {
			t.Fatal(err)
		}

		f.advance(11 * time.Minute)
		f.settle()

		if err := f.Get(t.Context(), key, found); err != nil || found.Data["key"] != "1" || found.Labels[v1alpha1.LabelOwnerName] != f.name {
			t.Errorf("%s: not repaired: %+v, %v", name, found, err)
		}
	}

	f.written()
	f.advance(11 * time.Minute)
	f.settle()

	if writes := f.written(); len(writes) > 0 {
		t.Errorf("a check without a difference writes: %v", writes)
	}
}

// TestHealth verifies that the condition follows a workload without a change of the spec (regression 13).
func TestHealth(t *testing.T) {
	f := newFixture(t)
	f.create(f.content("1", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: "+f.name+", namespace: default}\nspec:\n  replicas: 2\n  selector: {matchLabels: {app: it}}\n"+
		"  template:\n    metadata: {labels: {app: it}}\n    spec: {containers: [{name: c, image: i}]}\n"))
	f.settle()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonInstallationSucceeded, "")
	f.want(v1alpha1.TypeHealthy, metav1.ConditionFalse, v1alpha1.ReasonUnhealthy, "Deployment default/"+f.name)

	report := func(ready int32) {
		t.Helper()

		found := &appsv1.Deployment{}
		if err := f.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: f.name}, found); err != nil {
			t.Fatal(err)
		}

		available := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[ready == 2]
		found.Status = appsv1.DeploymentStatus{
			ObservedGeneration: found.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: ready, AvailableReplicas: ready,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: available},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}

		if err := f.Status().Update(t.Context(), found); err != nil {
			t.Fatal(err)
		}
	}

	report(2)
	f.settle()
	f.want(v1alpha1.TypeHealthy, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "")
	report(1)

	after, err := f.pass()
	if err != nil || after > 2*time.Minute {
		t.Errorf("the next look is after %s, %v", after, err)
	}

	f.want(v1alpha1.TypeHealthy, metav1.ConditionFalse, v1alpha1.ReasonUnhealthy, "Available: 1/2")
	f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonInstallationSucceeded, "")
}

// TestSecretsInHealth simulates a controller on the cluster that quotes a Secret in the status of an object. The condition must mask the
// Secret, even while the content cannot be read, and limit the text about each object.
func TestSecretsInHealth(t *testing.T) {
	f := newFixture(t)
	first, second := f.name+"-a", f.name+"-b"
	f.create(f.content("1", deploymentManifest(first)+"---\n"+deploymentManifest(second)))
	f.settle()

	for name, message := range map[string]string{
		first:  "cannot log in\nwith hunter2, or aHVudGVyMg== " + strings.Repeat("x", 20_000),
		second: "the second object",
	} {
		found := &appsv1.Deployment{}
		if err := f.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, found); err != nil {
			t.Fatal(err)
		}

		found.Status = appsv1.DeploymentStatus{ObservedGeneration: found.Generation, Conditions: []appsv1.DeploymentCondition{
			{Type: "Stalled", Status: corev1.ConditionTrue, Reason: "NoLogin", Message: message},
		}}
		if err := f.Status().Update(t.Context(), found); err != nil {
			t.Fatal(err)
		}
	}

	message := func() string {
		return meta.FindStatusCondition(f.deployment().Status.Conditions, v1alpha1.TypeHealthy).Message
	}

	check := func(reason string, wants ...string) {
		t.Helper()

		for _, unwanted := range []string{"hunter2", "aHVudGVyMg"} {
			if strings.Contains(message(), unwanted) {
				t.Errorf("%s: the message contains %s: %s", reason, unwanted, message())
			}
		}

		for _, want := range wants {
			if !strings.Contains(message(), want) {
				t.Errorf("%s: the message lacks %q: %s", reason, want, message())
			}
		}

		if lines := strings.Split(message(), "\n"); len(lines) != 2 || len(lines[0]) > 600 || len(lines[1]) > 600 {
			t.Errorf("%s: the message has %d lines, %d characters: %s", reason, len(lines), len(message()), message())
		}
	}

	f.settle()
	check("the content is known", "Deployment default/"+first, "***", "Deployment default/"+second)

	// A new process does not know the Secrets, and cannot read them.
	f.restart()
	f.unreadable = true
	f.settle()
	check("the content is not known", "Deployment default/"+first+": its status is not shown")

	f.unreadable = false
	f.settle()
	check("the content is known again", "***")
}

// TestSecretWithNumber installs a Secret whose password is a number without quotation marks. The API server rejects the Secret and quotes the
// password. No condition or event may contain it.
func TestSecretWithNumber(t *testing.T) {
	f := newFixture(t)
	f.options.Content = maskingSecrets{f}
	f.restart()
	f.create(f.content("1", "apiVersion: v1\nkind: Secret\nmetadata: {name: "+f.name+", namespace: default}\nstringData: {user: administrator, password: 73194628}\n"))
	f.settle()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonInstallFailed, "***")

	for _, condition := range f.deployment().Status.Conditions {
		if strings.Contains(condition.Message, "73194628") {
			t.Errorf("the condition %s contains the password: %s", condition.Type, condition.Message)
		}
	}

	if note := f.lastEvent(); strings.Contains(note, "73194628") {
		t.Errorf("the event contains the password: %s", note)
	}
}

// maskingSecrets is content that masks the values of its Secrets.
type maskingSecrets struct{ *fixture }

func (m maskingSecrets) Load(ctx context.Context, release deployments.Release) (deployments.Loaded, error) {
	loaded, err := m.fixture.Load(ctx, release)
	for _, object := range loaded.Objects {
		loaded.Masked = append(loaded.Masked, format.SecretValues(object)...)
	}

	return loaded, err
}

// kubeconfig creates or replaces the Secret with the kubeconfig of the target.
func (f *fixture) kubeconfig(content []byte) {
	f.Helper()

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: f.name}, Data: map[string][]byte{"kubeconfig": content}}
	if err := f.Create(f.Context(), secret); err == nil {
		return
	}

	if err := f.Update(f.Context(), secret); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) onTarget(deployment *v1alpha1.BundleDeployment) {
	deployment.Spec.Target = &v1alpha1.Target{KubeconfigSecretRef: v1alpha1.SecretKeyReference{Name: f.name}}
}

// targetClient returns a client of the target.
func (f *fixture) targetClient() client.Client {
	f.Helper()

	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		f.Fatal(err)
	}

	return f.connect(target, scheme)
}

// TestTarget installs on another cluster, whose API server goes away, rejects the credentials and comes back (regression 14).
func TestTarget(t *testing.T) {
	f := newFixture(t)
	there := f.targetClient()
	unreachable := regexp.MustCompile(`server: \S+`).ReplaceAll(targetKubeconfig, []byte("server: https://127.0.0.1:1"))
	rejected := []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://" + strings.TrimPrefix(target.Host, "https://") + ", insecure-skip-tls-verify: true}}]\n" +
		"users: [{name: u, user: {token: old}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n")
	program := []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://" + strings.TrimPrefix(target.Host, "https://") + "}}]\n" +
		"users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true, interactiveMode: Never}}}]\n" +
		"contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n")

	f.create(f.content("1", f.configMap("one", "1")), f.onTarget)
	f.settle()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionUnknown, v1alpha1.ReasonErrorGettingClient, "Secret default/"+f.name)
	f.kubeconfig(targetKubeconfig)
	f.settle()
	f.wantInstalled()

	if f.value(there, "one") != "1" || f.value(f, "one") != "" {
		t.Errorf("the target has %q, the hub %q", f.value(there, "one"), f.value(f, "one"))
	}

	for name, content := range map[string][]byte{"unreachable": unreachable, "rejected": rejected, "program": program, "nonsense": []byte("{")} {
		f.kubeconfig(content)

		after, err := f.pass()
		if err != nil || after < 10*time.Second {
			t.Errorf("%s: the next attempt is after %s, %v", name, after, err)
		}

		f.want(v1alpha1.TypeInstalled, metav1.ConditionUnknown, v1alpha1.ReasonErrorGettingClient, "")
		f.want(v1alpha1.TypeHealthy, metav1.ConditionUnknown, v1alpha1.ReasonObjectLookupFailure, "")

		if f.deployment().Status.ActiveBundle == "" {
			t.Errorf("%s: the active Bundle is forgotten", name)
		}
	}

	f.kubeconfig(targetKubeconfig)
	f.settle()
	f.wantInstalled()
	f.want(v1alpha1.TypeHealthy, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "")

	// A deletion does not wait for a lost cluster longer than the timeout.
	f.kubeconfig(unreachable)

	if err := f.Delete(t.Context(), f.deployment()); err != nil {
		t.Fatal(err)
	}

	if _, err := f.pass(); err != nil || f.gone() {
		t.Fatalf("the deletion does not wait for the cluster: %v", err)
	}

	f.advancePastDeletion(6 * time.Minute)

	if _, err := f.pass(); err != nil || !f.gone() {
		t.Fatalf("the deletion waits too long: %v", err)
	}

	if note := f.lastEvent(); !strings.Contains(note, "UninstallFailed not uninstalled after 5m0s") {
		t.Errorf("the event is %q", note)
	}
}

// TestReplacedCluster replaces the target cluster by an empty one, the hub, and its kubeconfig in the same Secret. The next reconciliation
// installs the objects on the new cluster.
func TestReplacedCluster(t *testing.T) {
	f := newFixture(t)
	f.kubeconfig(targetKubeconfig)
	f.create(f.content("1", f.configMap("one", "1")), f.onTarget)
	f.settle()
	f.wantInstalled()

	f.kubeconfig(fmt.Appendf(nil, "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://%s, certificate-authority-data: %s}}]\n"+
		"users: [{name: u, user: {client-certificate-data: %s, client-key-data: %s}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n",
		strings.TrimPrefix(hub.Host, "https://"), encoded(hub.CAData), encoded(hub.CertData), encoded(hub.KeyData)))

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	f.wantInstalled()
	f.want(v1alpha1.TypeHealthy, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "")

	if f.value(f, "one") != "1" {
		t.Error("the new cluster has no object")
	}
}

// TestMissingInventory deletes the inventory, as if the cluster had been replaced. The condition reports it, and the next reconciliation
// stores the inventory again.
func TestMissingInventory(t *testing.T) {
	f := newFixture(t)
	f.create(f.content("1", f.configMap("one", "1")))
	f.settle()
	f.want(v1alpha1.TypeHealthy, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "")

	inventory := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "core.rukpak.io.bundledeployment." + f.name}}
	if err := f.Delete(t.Context(), inventory); err != nil {
		t.Fatal(err)
	}

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	f.want(v1alpha1.TypeHealthy, metav1.ConditionFalse, v1alpha1.ReasonUnhealthy, "the inventory of BundleDeployment "+f.name+" is missing")

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	f.want(v1alpha1.TypeHealthy, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "")

	if err := f.Get(t.Context(), client.ObjectKeyFromObject(inventory), inventory); err != nil {
		t.Error(err)
	}
}

func encoded(text []byte) string { return base64.StdEncoding.EncodeToString(text) }

// lastEvent returns the last event.
func (f *fixture) lastEvent() (note string) {
	for {
		select {
		case note = <-f.events.Events:
		default:
			return note
		}
	}
}

// TestDeletionTimeout deletes a BundleDeployment, one of whose objects has a finalizer. The event names the object.
func TestDeletionTimeout(t *testing.T) {
	f := newFixture(t)
	f.create(f.content("1", f.configMap("held", "1")+f.configMap("free", "1")), func(made *v1alpha1.BundleDeployment) {
		made.Spec.DeletionTimeout = &metav1.Duration{Duration: 10 * time.Second}
	})
	f.settle()

	held := &corev1.ConfigMap{}
	if err := f.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: f.name + "-held"}, held); err != nil {
		t.Fatal(err)
	}

	held.Finalizers = []string{"example.com/held"}
	if err := f.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}

	if err := f.Delete(t.Context(), f.deployment()); err != nil {
		t.Fatal(err)
	}

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonUninstalling, "example.com/held")

	if f.value(f, "free") != "" {
		t.Error("an object without a finalizer remains")
	}

	f.advancePastDeletion(11 * time.Second)

	if _, err := f.pass(); err != nil || !f.gone() || len(f.bundles()) != 0 {
		t.Errorf("not deleted after the time-out: %v", err)
	}

	if note := f.lastEvent(); !strings.Contains(note, "1 object left on the cluster: ConfigMap default/"+f.name+"-held") {
		t.Errorf("the event is %q", note)
	}
}

// TestClasses verifies that a controller does not touch a BundleDeployment of another class, and removes only its finalizer from one whose
// class changes (regression 17).
func TestClasses(t *testing.T) {
	f := newFixture(t)
	f.create(f.content("1", f.configMap("one", "1")), func(made *v1alpha1.BundleDeployment) { made.Spec.ProvisionerClassName = "other" })
	f.written()

	for range 3 {
		if _, err := f.pass(); err != nil {
			t.Fatal(err)
		}
	}

	if writes := f.written(); len(writes) > 0 || len(f.deployment().Status.Conditions) > 0 {
		t.Errorf("an object of another class: %v", writes)
	}

	f.change(func(found *v1alpha1.BundleDeployment) { found.Spec.ProvisionerClassName = class })
	f.settle()
	f.wantInstalled()
	f.change(func(found *v1alpha1.BundleDeployment) { found.Spec.ProvisionerClassName = "other" })

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	if found := f.deployment(); len(found.Finalizers) > 0 || f.value(f, "one") != "1" || len(f.bundles()) != 1 {
		t.Errorf("the controller does not let go, or uninstalls: %v", found.Finalizers)
	}

	f.options.Class = "other"
	f.restart()
	f.settle()
	f.wantInstalled()
	f.remove()

	if f.value(f, "one") != "" {
		t.Error("the new class does not uninstall")
	}
}

// TestSuspendAndDryRun verifies that spec.suspend and spec.dryRun prevent changes to the cluster, and that a dry run names the differences.
func TestSuspendAndDryRun(t *testing.T) {
	f := newFixture(t)
	f.create(f.content("1", f.configMap("one", "1")+f.configMap("two", "1")), func(made *v1alpha1.BundleDeployment) { made.Spec.DryRun = true })
	f.settle()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonDryRun, "create ConfigMap default/"+f.name+"-one")

	if f.value(f, "one") != "" {
		t.Error("the dry run installs")
	}

	f.change(func(found *v1alpha1.BundleDeployment) { found.Spec.DryRun = false })
	f.settle()
	f.wantInstalled()

	f.upgrade(f.content("2", f.configMap("one", "2")+f.configMap("three", "2")))
	f.change(func(found *v1alpha1.BundleDeployment) { found.Spec.DryRun = true })
	f.settle()

	for _, want := range []string{"change ConfigMap default/" + f.name + "-one", "create ConfigMap default/" + f.name + "-three", "delete ConfigMap default/" + f.name + "-two"} {
		f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonDryRun, want)
	}

	f.change(func(found *v1alpha1.BundleDeployment) { found.Spec.DryRun, found.Spec.Suspend = false, true })
	f.settle()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonSuspended, "")
	f.want(v1alpha1.TypeHealthy, metav1.ConditionUnknown, v1alpha1.ReasonSuspended, "")

	if f.value(f, "one") != "1" {
		t.Error("a suspended BundleDeployment is upgraded")
	}

	f.change(func(found *v1alpha1.BundleDeployment) { found.Spec.Suspend = false })
	f.settle()
	f.wantInstalled()
	f.want(v1alpha1.TypeHealthy, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "")
}

// TestHealthInFailedDryRun verifies that the conditions describe the current generation although the desired Bundle can be neither read nor
// installed.
func TestHealthInFailedDryRun(t *testing.T) {
	invalid := "apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: default}\nspec: {ports: [{port: 99999}]}\n"

	for name, unreadable := range map[string]bool{"content that cannot be read": true, "object that is rejected": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.create(f.content("1", f.configMap("one", "1")))
			f.settle()
			f.upgrade(f.content("2", fmt.Sprintf(invalid, f.name)))
			f.change(func(found *v1alpha1.BundleDeployment) { found.Spec.DryRun = true })

			f.settle()

			f.unreadable = unreadable
			f.change(func(found *v1alpha1.BundleDeployment) {
				found.Spec.Config = runtime.RawExtension{Raw: []byte(`{"other":"1"}`)}
			})
			f.settle()
			f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonDryRun, "cannot be")
			f.want(v1alpha1.TypeHealthy, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "")
		})
	}

	f := newFixture(t)
	f.create(f.content("1", fmt.Sprintf(invalid, f.name)), func(made *v1alpha1.BundleDeployment) { made.Spec.DryRun = true })
	f.settle()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonDryRun, "cannot be installed")
	f.want(v1alpha1.TypeHealthy, metav1.ConditionFalse, v1alpha1.ReasonInstallationStatusFalse, "a dry run does not install anything")
}

// TestDependencies verifies the order of BundleDeployments, and that a cycle is reported.
func TestDependencies(t *testing.T) {
	first, second := newFixture(t), newFixture(t)
	second.create(second.content("1", second.configMap("one", "1")), func(made *v1alpha1.BundleDeployment) {
		made.Spec.DependsOn = []v1alpha1.Dependency{{Name: first.name}}
	})
	second.settle()
	second.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonDependencyPending, "BundleDeployment "+first.name+" does not exist")

	first.create(first.content("1", first.configMap("one", "1")), func(made *v1alpha1.BundleDeployment) {
		made.Spec.DependsOn = []v1alpha1.Dependency{{Name: second.name}}
	})
	first.settle()
	second.settle()
	second.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonDependencyPending, "in a cycle: "+second.name+", "+first.name)

	first.change(func(found *v1alpha1.BundleDeployment) { found.Spec.DependsOn = nil })
	first.settle()
	second.settle()
	second.wantInstalled()
}

// TestManyLargeUpgrades installs more than 3 MiB of manifests, which no single object of Kubernetes can hold, and upgrades 200 times. The
// data that the controller keeps does not grow with the number of upgrades (regression 16).
func TestManyLargeUpgrades(t *testing.T) {
	const (
		upgrades = 200
		large    = 900 << 10
	)

	f := newFixture(t)

	var text strings.Builder
	for _, name := range []string{"a", "b", "c", "d"} {
		text.WriteString(f.configMap(name, strings.Repeat(name, large)))
	}

	f.create(f.content("0", text.String()))
	f.settle()
	f.wantInstalled()

	for _, name := range []string{"a", "b", "c", "d"} {
		if f.value(f, name) != strings.Repeat(name, large) {
			t.Errorf("the object %s has %d bytes", name, len(f.value(f, name)))
		}
	}

	// kept returns the number of Secrets and the size of all that is kept.
	kept := func() (number, size int) {
		t.Helper()

		secrets := &corev1.SecretList{}
		if err := f.List(t.Context(), secrets); err != nil {
			t.Fatal(err)
		}

		for _, secret := range secrets.Items {
			if strings.Contains(secret.Name, f.name) {
				number++
				size += secret.Size()
			}
		}

		status, err := json.Marshal(f.deployment())
		if err != nil {
			t.Fatal(err)
		}

		return number, size + len(status)
	}

	var after int

	for i := range upgrades {
		f.upgrade(f.content(fmt.Sprintf("n%03d", i), f.configMap("one", strings.Repeat("y", i+1))))
		f.settle()

		if i == upgrades/10 {
			_, after = kept()
		}
	}

	f.wantInstalled()

	number, size := kept()
	if number != 1 || size > after*11/10 || len(f.value(f, "one")) != upgrades || f.value(f, "a") != "" {
		t.Errorf("%d Secrets; %d bytes are kept, %d after %d upgrades; the last upgrade is %d", number, size, after, upgrades/10, len(f.value(f, "one")))
	}

	if history := f.deployment().Status.History; len(history) != 10 || history[0].Number != upgrades+1 {
		t.Errorf("the history has %d versions: %+v", len(history), history)
	}
}
