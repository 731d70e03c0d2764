package bench

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/test/apiserver"
	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/report"
	"github.com/environment-broker/environment-broker/test/harness"
)

// bundleNamespace is the namespace of the bundle provisioner.
const bundleNamespace = "bundle-system"

// bundler is a bundle provisioner with one kube-apiserver, which is both its hub and its target.
type bundler struct {
	*program
	client.Client

	status string
}

// startBundler runs a kube-apiserver with etcd, and a bundle provisioner, until the scope ends.
func (s *scope) startBundler() *bundler {
	ctrl.SetLogger(logr.Discard())

	config := apiserver.Run(s, apiserver.CRDs).Config
	scheme := runtime.NewScheme()

	s.check(clientscheme.AddToScheme(scheme))
	s.check(v1alpha1.AddToScheme(scheme))

	connection, err := client.New(config, client.Options{Scheme: scheme})
	s.check(err)

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: bundleNamespace, Name: "provisioner"}}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bundleNamespace}}, account,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "provisioner"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
		},
	} {
		s.check(connection.Create(s.Context(), object))
	}

	token := &authenticationv1.TokenRequest{}
	s.check(connection.SubResource("token").Create(s.Context(), account, token))

	const name = "hub"

	access := clientcmdapi.NewConfig()
	access.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	access.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	access.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	access.CurrentContext = name
	kubeconfig := filepath.Join(s.TempDir(), "kubeconfig")

	s.check(clientcmd.WriteToFile(*access, kubeconfig))

	path := filepath.Join(s.TempDir(), "bundler")
	if output, err := exec.CommandContext(s.Context(), "go", "build", "-o", path, "../../cmd/bundler").CombinedOutput(); err != nil {
		s.Fatalf("building the bundler: %v\n%s", err, output)
	}

	status := "http://" + s.freeAddress()

	return &bundler{s.startProgram(path, "", status+"/readyz", []string{
		"APP_ADDRESS=" + s.freeAddress(), "APP_STATUS_ADDRESS=" + strings.TrimPrefix(status, "http://"), "APP_KUBECONFIG_PATH=" + kubeconfig,
		"APP_STORE_DIR=" + s.TempDir(), "APP_TLS_SELF_SIGNED=true", "APP_SHUTDOWN_DELAY=0s",
	}), connection, status}
}

// source stores manifests in a ConfigMap, and returns a BundleSource that refers to it.
func (b *bundler) source(name, manifests string) v1alpha1.BundleSource {
	b.Helper()

	immutable := true
	b.check(b.Create(b.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: bundleNamespace, Name: name}, Immutable: &immutable, Data: map[string]string{"objects.yaml": manifests},
	}))

	return v1alpha1.BundleSource{
		Type:       v1alpha1.SourceTypeConfigMaps,
		ConfigMaps: []v1alpha1.ConfigMapSource{{ConfigMap: v1alpha1.LocalReference{Name: name}, Path: "manifests"}},
	}
}

const plainClass = "core-rukpak-io-plain"

// deployment returns a BundleDeployment of the given source.
func deployment(name string, source v1alpha1.BundleSource) *v1alpha1.BundleDeployment {
	return &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.BundleDeploymentSpec{ProvisionerClassName: plainClass, Template: v1alpha1.BundleTemplate{
			Spec: v1alpha1.TemplateSpec{ProvisionerClassName: plainClass, Source: source},
		}},
	}
}

// until polls until the condition is true. The interval must be short compared to the measured times.
func (b *bundler) until(interval time.Duration, condition func() bool) {
	b.Helper()

	for deadline := time.Now().Add(harness.Patience); !condition(); time.Sleep(interval) {
		if time.Now().After(deadline) {
			list := &v1alpha1.BundleDeploymentList{}
			b.check(b.List(b.Context(), list))
			b.Fatalf("waited longer than %s for BundleDeployments such as %+v", harness.Patience, list.Items[0].Status)
		}
	}
}

// allInstalled reports whether the given numbers of BundleDeployments are installed and of Bundles are unpacked.
func (b *bundler) allInstalled(deployments, bundles int) bool {
	b.Helper()

	installed, unpacked := &v1alpha1.BundleDeploymentList{}, &v1alpha1.BundleList{}
	b.check(b.List(b.Context(), installed))
	b.check(b.List(b.Context(), unpacked))

	installed.Items = slices.DeleteFunc(installed.Items, func(one v1alpha1.BundleDeployment) bool {
		return !meta.IsStatusConditionTrue(one.Status.Conditions, v1alpha1.TypeInstalled)
	})
	unpacked.Items = slices.DeleteFunc(unpacked.Items, func(one v1alpha1.Bundle) bool { return one.Status.Phase != v1alpha1.PhaseUnpacked })

	return len(installed.Items) == deployments && len(unpacked.Items) == bundles
}

// calls returns the number of calls to the API server so far, by method.
func (b *bundler) calls() map[string]float64 {
	b.Helper()

	generator := load.New(1)
	defer generator.Close()

	text := b.fetch(generator, gets(b.status+"/metrics/controllers")(0)).Body
	parser := expfmt.NewTextParser(model.LegacyValidation)

	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	b.check(err)

	calls := map[string]float64{}

	for _, metric := range families["rest_client_requests_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "method" {
				calls[label.GetValue()] += metric.GetCounter().GetValue()
			}
		}
	}

	return calls
}

// measureBundles measures a bundle provisioner with many Bundles and BundleDeployments of one object each.
func measureBundles(s *scope) {
	const deployments, alone = 500, 500

	b := s.startBundler()
	idle, _ := b.memory()
	calls := b.calls()
	cpu := s.cpuOf(b.command.Process.Pid)

	var sources []v1alpha1.BundleSource
	for i := range deployments {
		sources = append(sources, b.source(fmt.Sprintf("content-%d", i),
			fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: object-%d, namespace: default}\ndata: {key: value}\n", i)))
	}

	start := time.Now()

	var group errgroup.Group
	group.SetLimit(clients)

	for i, source := range sources {
		group.Go(func() error { return b.Create(b.Context(), deployment(fmt.Sprintf("deployment-%d", i), source)) })
		group.Go(func() error {
			return b.Create(b.Context(), &v1alpha1.Bundle{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("alone-%d", i)}, Spec: v1alpha1.BundleSpec{ProvisionerClassName: plainClass, Source: source},
			})
		})
	}

	s.check(group.Wait())
	b.until(time.Second, func() bool { return b.allInstalled(deployments, deployments+alone) })

	took := time.Since(start)
	used := s.cpuOf(b.command.Process.Pid) - cpu

	// The first reconciliations after the installation read the health of the objects, which must not count as idle work.
	time.Sleep(10 * time.Second)

	name := fmt.Sprintf("%d Bundles and %d BundleDeployments at once (one run): ", deployments+alone, deployments)
	resident, peak := b.memory()

	s.add(report.Figure{Name: name + "all installed", Unit: "s"}, took.Seconds())
	s.add(report.Figure{
		Name: name + "calls to the API server per BundleDeployment, with two Bundles and one object", Note: methods(calls, b.calls(), deployments),
	}, total(calls, b.calls())/deployments)
	s.add(report.Figure{Name: name + "CPU time of the bundler per BundleDeployment, with two Bundles", Unit: "ms"}, milliseconds(used)/deployments)
	s.add(report.Figure{Name: name + "resident memory of the bundler at rest", Unit: "MiB", Note: fmt.Sprintf("%.0f without Bundles", idle/mebibyte)}, resident/mebibyte)
	s.add(report.Figure{Name: name + "resident memory of the bundler at its peak", Unit: "MiB"}, peak/mebibyte)

	const rest = 2 * time.Minute

	before := b.calls()
	cpu = s.cpuOf(b.command.Process.Pid)

	time.Sleep(rest)

	after := b.calls()

	s.add(report.Figure{
		Name: name + "calls to the API server per minute at rest", Note: methods(before, after, rest.Minutes()) + "; the lease takes 30 PUT",
	}, total(before, after)/rest.Minutes())
	s.add(report.Figure{Name: name + "CPU time of the bundler per minute at rest", Unit: "s"},
		(s.cpuOf(b.command.Process.Pid)-cpu).Seconds()/rest.Minutes())

	const objects = 3*deployments + alone // with the Bundle and the ConfigMap of each BundleDeployment

	s.addWithFloor(report.Figure{
		Name: name + "objects per second until all are installed", Note: "floor: server-side apply PATCHes that create the same objects",
	}, objects/took.Seconds(), objects/b.creation(deployments, alone, sources).Seconds())
}

// creation creates the same objects as measureBundles by server-side apply, with a provisioner class that no provisioner serves, and
// returns how long that takes.
func (b *bundler) creation(deployments, alone int, sources []v1alpha1.BundleSource) time.Duration {
	b.Helper()

	const foreign = "floor"

	var group errgroup.Group
	group.SetLimit(clients)

	apply := func(object client.Object) {
		group.Go(func() error {
			text, err := json.Marshal(object)
			if err != nil {
				return err
			}

			applied := &unstructured.Unstructured{}
			if err := json.Unmarshal(text, &applied.Object); err != nil {
				return err
			}

			delete(applied.Object, "status")
			unstructured.RemoveNestedField(applied.Object, "spec", "config") // null if it is empty

			return b.Apply(b.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("bench"))
		})
	}
	kind := func(name string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: name}
	}
	start := time.Now()

	for i := range deployments {
		made := deployment(fmt.Sprintf("floor-%d", i), sources[i])
		made.TypeMeta, made.Spec.ProvisionerClassName = kind("BundleDeployment"), foreign
		apply(made)
		apply(&corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("floor-%d", i)}, Data: map[string]string{"key": "value"},
		})
	}

	for i := range deployments + alone {
		apply(&v1alpha1.Bundle{
			TypeMeta: kind("Bundle"), ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("floor-%d", i)},
			Spec: v1alpha1.BundleSpec{ProvisionerClassName: foreign, Source: sources[i%deployments]},
		})
	}

	b.check(group.Wait())

	return time.Since(start)
}

// total returns the number of calls between two calls to bundler.calls, whose results are before and after.
func total(before, after map[string]float64) (sum float64) {
	for method, count := range after {
		sum += count - before[method]
	}

	return sum
}

// methods lists the calls between two results of bundler.calls by method. It divides each count by the number by.
func methods(before, after map[string]float64, by float64) string {
	var lines []string

	for method, count := range after {
		if more := count - before[method]; more > 0 {
			lines = append(lines, fmt.Sprintf("%s %.3g", method, more/by))
		}
	}

	slices.Sort(lines)

	return strings.Join(lines, ", ")
}

// measurePivot compares a pivot to a new Bundle with patching each of its objects, one after another.
func measurePivot(s *scope) {
	const objects = 100

	b := s.startBundler()
	manifests := func(value string) string {
		var text strings.Builder
		for i := range objects {
			fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: object-%d, namespace: default}\ndata: {key: %q}\n", i, value)
		}

		return text.String()
	}

	made := deployment("pivot", b.source("content-0", manifests("0")))
	s.check(b.Create(s.Context(), made))
	b.until(10*time.Millisecond, func() bool { return b.allInstalled(1, 1) })
	b.patches(objects, "0")

	for round := range *rounds {
		value := strconv.Itoa(round + 1)
		source := b.source("content-"+value, manifests(value))

		s.check(b.Get(s.Context(), client.ObjectKeyFromObject(made), made))
		former := made.Status.ActiveBundle
		made.Spec.Template.Spec.Source = source

		start := time.Now()

		s.check(b.Update(s.Context(), made))
		b.until(10*time.Millisecond, func() bool {
			s.check(b.Get(s.Context(), client.ObjectKeyFromObject(made), made))

			return made.Status.ActiveBundle != former
		})

		took := time.Since(start)

		// The share compares rates, so that more is better: a pivot that takes 1.5 times as long as the floor has a share of 67 %.
		s.addWithFloor(report.Figure{
			Name: "pivot of a bundle with 100 objects: objects per second", FloorShare: 67, Note: "floor: 100 server-side apply PATCHes, one after another",
		}, objects/took.Seconds(), objects/b.patches(objects, value).Seconds())
	}
}

// patches applies count objects with the given value, one after another, and returns how long that takes.
func (b *bundler) patches(count int, value string) time.Duration {
	b.Helper()

	start := time.Now()

	for i := range count {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("floor-%d", i), "namespace": "default"},
			"data": map[string]any{"key": value},
		}}
		b.check(b.Apply(b.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("bench"), client.ForceOwnership))
	}

	return time.Since(start)
}
