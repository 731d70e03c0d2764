//go:build garden

package service_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/bundle/content"
	"github.com/environment-broker/environment-broker/bundle/renderer/engines"
	"github.com/environment-broker/environment-broker/bundle/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/test/apiserver"
)

var api *rest.Config

func TestMain(m *testing.M) {
	engines.Main()
	ctrl.SetLogger(logr.Discard())
	os.Exit(apiserver.Main(m, &api, apiserver.CRDs))
}

// settings returns a configuration with its own classes, so that the services of other tests ignore its Bundles.
func settings(t *testing.T, namespace string) service.Config {
	config := service.DefaultConfig()
	config.Address, config.StatusAddress, config.ShutdownDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	config.Namespace, config.StoreDir, config.TLS.SelfSigned = namespace, t.TempDir(), true
	config.Bundles.PlainClass, config.Deployments.PlainClass = "class-"+namespace, "class-"+namespace
	config.Bundles.RegistryClass = "registry-" + namespace
	config.Deployments.Enabled = false // needs a token
	return config
}

func start(t *testing.T, config service.Config) *service.Service {
	t.Helper()
	replica, err := service.New(t.Context(), config, api, logging.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return replica
}

func status(t *testing.T, replica *service.Service, path string) (int, string) {
	t.Helper()
	response, err := http.Get("http://" + replica.StatusAddress() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func reader(t *testing.T, config service.Config) *content.Client {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "content-" + config.Namespace},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/bundles/*"}, Verbs: []string{"get"}}, {NonResourceURLs: []string{"/uploads/*"}, Verbs: []string{"put"}}},
	}
	if err := bundletest.Client(t, api).Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	connection, err := content.NewClient(content.ClientOptions{
		Token: bundletest.Token(t, api, config.Namespace, "client", role.Name), CAFile: filepath.Join(config.StoreDir, "tls.crt"),
		Timeout: time.Minute, Limits: archive.DefaultLimits(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connection.Close)
	return connection
}

func create(t *testing.T, config service.Config, source v1alpha1.BundleSource) string {
	t.Helper()
	cluster := bundletest.Client(t, api)
	bundle := &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "service-"}, Spec: v1alpha1.BundleSpec{ProvisionerClassName: config.Bundles.PlainClass, Source: source},
	}
	if err := cluster.Create(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bundletest.Delete(t, cluster, bundle) })
	return bundle.Name
}

func reaches(t *testing.T, name string, phase v1alpha1.Phase) v1alpha1.BundleStatus {
	t.Helper()
	bundle, cluster := &v1alpha1.Bundle{}, bundletest.Client(t, api)
	bundletest.Eventually(t, func() string {
		if err := cluster.Get(t.Context(), client.ObjectKey{Name: name}, bundle); err != nil {
			return err.Error()
		}
		if bundle.Status.Phase != phase {
			return "not " + string(phase) + ": " + string(bundle.Status.Phase)
		}
		return ""
	})
	return bundle.Status
}

const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// TestService unpacks a Bundle from a ConfigMap with two replicas that have separate stores, and fetches its content from both.
func TestService(t *testing.T) {
	config := settings(t, bundletest.Namespace(t, api))
	leader := start(t, config)
	bundletest.Eventually(t, func() string {
		if code, text := status(t, leader, "/readyz"); code != http.StatusOK {
			return text
		}
		return ""
	})
	immutable := true
	if err := bundletest.Client(t, api).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: "content"}, Immutable: &immutable, Data: map[string]string{"a.yaml": object},
	}); err != nil {
		t.Fatal(err)
	}
	name := create(t, config, v1alpha1.BundleSource{Type: v1alpha1.SourceTypeConfigMaps, ConfigMaps: []v1alpha1.ConfigMapSource{
		{ConfigMap: v1alpha1.LocalReference{Name: "content"}, Path: "manifests"},
	}})
	unpacked := reaches(t, name, v1alpha1.PhaseUnpacked)
	client := reader(t, config)

	other := config
	other.StoreDir = t.TempDir()
	follower := start(t, other)
	otherClient := reader(t, settingsOf(other, bundletest.Namespace(t, api)))
	for _, each := range []struct {
		client *content.Client
		server string
	}{{client, leader.Address()}, {otherClient, follower.Address()}} {
		bundletest.Eventually(t, func() string {
			into, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer into.Close()
			if err := each.client.Fetch(t.Context(), content.URL(each.server, name), unpacked.Digest, into); err != nil {
				return err.Error()
			}
			if text, err := into.ReadFile("manifests/a.yaml"); err != nil || string(text) != object {
				return "the content is " + string(text)
			}
			return ""
		})
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/metrics/controllers"} {
		if code, text := status(t, leader, path); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	_, controllers := status(t, leader, "/metrics/controllers")
	for _, gauge := range []string{"workqueue_depth{", "leader_election_master_status{"} {
		if !strings.Contains(controllers, "\n"+gauge) {
			t.Errorf("the metrics of the controllers lack %s}, which the page names", gauge)
		}
	}
	documented(t, leader)
}

// settingsOf returns the configuration with another namespace, for the ServiceAccount of another client.
func settingsOf(config service.Config, namespace string) service.Config {
	config.Namespace = namespace
	return config
}

// documented checks that the page for operators describes the metrics of Bundles.
func documented(t *testing.T, replica *service.Service) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operator", "bundles.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text := status(t, replica, "/metrics")
	found := regexp.MustCompile(`(?m)^# HELP (environment_broker_bundle_\w+) (.*)$`).FindAllStringSubmatch(text, -1)
	if len(found) < 4 {
		t.Errorf("found only the metrics %v", found)
	}
	for _, metric := range found {
		if !strings.Contains(string(page), metric[1]) || !strings.Contains(string(page), metric[2]) {
			t.Errorf("docs/operator/bundles.md does not have %s: %s", metric[1], metric[2])
		}
	}
}

// TestUpload uploads an archive of a folder.
func TestUpload(t *testing.T) {
	config := settings(t, bundletest.Namespace(t, api))
	replica := start(t, config)
	name := create(t, config, v1alpha1.BundleSource{Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{}})
	reaches(t, name, v1alpha1.PhasePending)
	var packed bytes.Buffer
	if err := archive.Pack(t.Context(), fstest.MapFS{"manifests/a.yaml": {Data: []byte(object)}}, &packed); err != nil {
		t.Fatal(err)
	}
	client := reader(t, config)
	for i, want := range []bool{true, false} {
		bundletest.Eventually(t, func() string {
			created, err := client.Upload(t.Context(), replica.Address(), name, bytes.NewReader(packed.Bytes()), int64(packed.Len()))
			if err != nil {
				return err.Error()
			}
			if created != want {
				t.Errorf("upload %d: created is %t", i, created)
			}
			return ""
		})
		reaches(t, name, v1alpha1.PhaseUnpacked)
	}
}

// TestDisabledSource disables all sources. A Bundle with any of them fails with a message that names it.
func TestDisabledSource(t *testing.T) {
	config := settings(t, bundletest.Namespace(t, api))
	config.Sources.Image, config.Sources.Git, config.Sources.HTTP, config.Sources.ConfigMaps, config.Sources.Upload = false, false, false, false, false
	replica := start(t, config)
	for _, source := range []v1alpha1.BundleSource{
		{Type: v1alpha1.SourceTypeImage, Image: &v1alpha1.ImageSource{Ref: "example.com/a:v1"}},
		{Type: v1alpha1.SourceTypeGit, Git: &v1alpha1.GitSource{Repository: "https://example.com/a", Ref: v1alpha1.GitRef{Branch: "main"}}},
		{Type: v1alpha1.SourceTypeHTTP, HTTP: &v1alpha1.HTTPSource{URL: "https://example.com/a.tgz"}},
		{Type: v1alpha1.SourceTypeConfigMaps, ConfigMaps: []v1alpha1.ConfigMapSource{{ConfigMap: v1alpha1.LocalReference{Name: "a"}}}},
		{Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{}},
	} {
		name := create(t, config, source)
		got := reaches(t, name, v1alpha1.PhaseFailing).Conditions[0]
		if got.Type != v1alpha1.TypeUnpacked || got.Status != metav1.ConditionFalse || got.Reason != v1alpha1.ReasonUnpackFailed ||
			!strings.Contains(got.Message, "source type "+string(source.Type)+" is not supported") {
			t.Errorf("%s: the condition is %+v", source.Type, got)
		}
		hasEvent(t, v1alpha1.KindBundle, name, "Warning UnpackFailed "+got.Message)
	}
	_, text := status(t, replica, "/metrics")
	for _, source := range []string{"image", "git", "http", "configMaps", "upload"} {
		if want := `environment_broker_bundle_unpacks_total{result="rejected",source="` + source + `"} 1`; !strings.Contains(text, want) {
			t.Errorf("a Bundle that cannot be unpacked is tried again: no %s in %s", want, text)
		}
	}

	before := passes(t, replica)
	reaches(t, create(t, config, v1alpha1.BundleSource{Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{}}), v1alpha1.PhaseFailing)
	if after := passes(t, replica); after-before > 20 { // the new Bundle needs a few
		t.Errorf("the controller has made %d passes while one Bundle was new", after-before)
	}
}

// passes returns the number of reconciliations by all Bundle controllers in this process.
func passes(t *testing.T, replica *service.Service) (sum int) {
	t.Helper()
	_, text := status(t, replica, "/metrics/controllers")
	for _, found := range regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{controller="bundles",.*\} (\d+)$`).FindAllStringSubmatch(text, -1) {
		count, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		sum += count
	}
	if sum == 0 {
		t.Fatalf("no passes in %s", text)
	}
	return sum
}

// hasEvent waits for an event with a type, a reason and a note.
func hasEvent(t *testing.T, kind, name, want string) {
	t.Helper()
	cluster := bundletest.Client(t, api)
	bundletest.Eventually(t, func() string {
		list := &eventsv1.EventList{}
		if err := cluster.List(t.Context(), list); err != nil {
			return err.Error()
		}
		var found []string
		for _, each := range list.Items {
			if each.Regarding.Kind == kind && each.Regarding.Name == name {
				found = append(found, each.Type+" "+each.Reason+" "+each.Note)
			}
		}
		if !slices.ContainsFunc(found, func(text string) bool { return strings.HasPrefix(text, want) }) {
			return "no event " + want + " among " + strings.Join(found, ", ")
		}
		return ""
	})
}

func TestInvalidConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*service.Config)
		want   string
	}{
		"class":       {func(c *service.Config) { c.Bundles.PlainClass = "core.rukpak.io/plain" }, "must be DNS labels"},
		"same class":  {func(c *service.Config) { c.Bundles.RegistryClass = c.Bundles.PlainClass }, "must differ"},
		"workers":     {func(c *service.Config) { c.Bundles.Workers = 0 }, "APP_BUNDLES_WORKERS"},
		"certificate": {func(c *service.Config) { c.TLS.SelfSigned = false }, "APP_TLS_CERT_FILE"},
		"disabled":    {func(c *service.Config) { c.Bundles.Enabled = false }, "APP_BUNDLES_ENABLED"},
		"lease":       {func(c *service.Config) { c.LeaseName = "a/b" }, "APP_LEASE_NAME"},
		"half a pair": {func(c *service.Config) { c.TLS = service.TLS{CertFile: "a"} }, "APP_TLS_CERT_FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			config := settings(t, "any")
			c.change(&config)
			if _, err := service.New(t.Context(), config, api, logging.Discard()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
