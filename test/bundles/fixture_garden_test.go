//go:build garden

package bundles

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// fixture is a BundleDeployment with its own bundle provisioner: classes, namespace, accounts, registry and proxies.
type fixture struct {
	*testing.T

	// name is the name of the BundleDeployment and its namespace.
	name string
	hub  client.WithWatch
	// on is a client for the cluster on which objects are installed: the hub if onHub is true, or else the target.
	on    client.WithWatch
	onHub bool
	gate  *gate
	// registry is the address at which the bundler calls the registry. pushes is the address to which the test pushes artifacts.
	registry, pushes string
	front            *httptest.Server
	// targetProxy is the proxy in front of the target.
	targetProxy *httptest.Server
	// token is a bearer token for reading and uploading content.
	token     string
	variables []string
	replicas  []*replica
	next      atomic.Uint64
	// frozen is the replica that a test has stopped, or nil.
	frozen atomic.Pointer[replica]
	// leader is the index of the replica that most recently renewed its lease.
	leader atomic.Int64
}

// class and registryClass return the provisioner classes of the fixture, so that other bundlers ignore its objects.
func (f *fixture) class() string         { return "plain-" + f.name }
func (f *fixture) registryClass() string { return "registry-" + f.name }

// newFixture starts the given number of replicas with additional environment variables. If there are several, they elect a leader.
func newFixture(t *testing.T, replicas int, onHub bool, variables ...string) *fixture {
	t.Helper()

	f := &fixture{
		T: t, name: "bd-" + uuid.NewString()[:8], hub: bundletest.Client(t, hub.config), onHub: onHub, gate: newGate(),
	}
	f.on = f.hub

	if !onHub {
		f.on = bundletest.Client(t, target.config)
	}

	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.name}})
	f.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: "provisioner"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bundle-provisioner-namespace"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.name, Name: "provisioner"}},
	})

	roles := []string{"bundle-provisioner"}
	if onHub {
		roles = append(roles, "cluster-admin")
	}

	f.token = bundletest.Token(t, hub.config, f.name, "client", "bundle-reader", "bundle-uploader")
	f.registry, f.pushes = f.startRegistry()
	f.front = f.gate.content(t, f.server)
	ca := f.file("ca.crt", authority(f.front))
	token := bundletest.Token(t, hub.config, f.name, "provisioner", roles...)

	if !onHub {
		f.targetSecret()
	}

	f.variables = []string{
		"APP_EXTERNAL_ADDRESS=" + f.front.URL, "APP_DEPLOYMENTS_CA_FILE=" + ca, "APP_NAMESPACE=" + f.name,
		fmt.Sprintf("APP_LEADER_ELECTION=%t", replicas > 1), "APP_TLS_SELF_SIGNED=true", "APP_SHUTDOWN_DELAY=0s",
		"APP_BUNDLES_PLAIN_CLASS=" + f.class(), "APP_BUNDLES_REGISTRY_CLASS=" + f.registryClass(), "APP_DEPLOYMENTS_PLAIN_CLASS=" + f.class(),
		"APP_DEPLOYMENTS_HEALTH_INTERVAL=1s", "APP_DEPLOYMENTS_DRIFT_INTERVAL=2s", "APP_DEPLOYMENTS_UNREACHABLE_INTERVAL=1s", "STORE_FAULTS=" + f.gate.store(t),
	}
	f.variables = append(f.variables, variables...)

	t.Cleanup(f.cleanUp)

	for i := range replicas {
		f.replicas = append(f.replicas, newBundler(f, f.file("kubeconfig", f.kubeconfig("hub", hub, token, func() { f.leader.Store(int64(i)) }))))
	}

	return f
}

// server returns the address of a replica's content server. It selects the replicas in turn. Like a Kubernetes Service, it leaves
// out a replica that is not ready because it is frozen.
func (f *fixture) server() *url.URL {
	for {
		one := f.replicas[f.next.Add(1)%uint64(len(f.replicas))]
		if one != f.frozen.Load() {
			return &url.URL{Scheme: "https", Host: one.address}
		}
	}
}

// targetSecret stores the target's kubeconfig in a Secret on the hub.
func (f *fixture) targetSecret() {
	f.Helper()

	on := bundletest.Client(f, target.config)
	if err := on.Create(f.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.name}}); err != nil {
		f.Fatal(err)
	}

	token := bundletest.Token(f, target.config, f.name, "installer", "cluster-admin")
	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: "target"}, Data: map[string][]byte{"kubeconfig": f.kubeconfig("target", target, token, func() {})},
	})
}

// kubeconfig runs a proxy in front of a cluster, and returns a kubeconfig for the proxy.
func (f *fixture) kubeconfig(name string, to *cluster, token string, renewed func()) []byte {
	f.Helper()

	server := f.gate.cluster(f, name, to, renewed)
	if to == target {
		f.targetProxy = server
	}

	return f.kubeconfigOf(server, token)
}

// kubeconfigOf returns a kubeconfig for an API server.
func (f *fixture) kubeconfigOf(server *httptest.Server, token string) []byte {
	f.Helper()

	const name = "cluster"

	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: authority(server)}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name

	text, err := clientcmd.Write(*config)
	if err != nil {
		f.Fatal(err)
	}

	return text
}

// file writes a file with the given content and returns its path.
func (f *fixture) file(name string, content []byte) string {
	f.Helper()

	path := filepath.Join(f.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		f.Fatal(err)
	}

	return path
}

func (f *fixture) create(object client.Object) {
	f.Helper()

	if err := f.hub.Create(f.Context(), object); err != nil {
		f.Fatal(err)
	}
}

// template returns a Bundle template with the given class and source.
func (f *fixture) template(class string, source v1alpha1.BundleSource) v1alpha1.BundleTemplate {
	return v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{ProvisionerClassName: class, Source: source}}
}

// deploy creates the BundleDeployment with the given template, or changes its template.
func (f *fixture) deploy(template v1alpha1.BundleTemplate) {
	f.Helper()

	deployment := &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: f.name}, Spec: v1alpha1.BundleDeploymentSpec{ProvisionerClassName: f.class(), Template: template},
	}
	if !f.onHub {
		deployment.Spec.Target = &v1alpha1.Target{KubeconfigSecretRef: v1alpha1.SecretKeyReference{Name: "target"}}
	}

	err := f.hub.Create(f.Context(), deployment)
	if err == nil {
		return
	}

	bundletest.Eventually(f, func() string {
		if err := f.hub.Get(f.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err.Error()
		}

		deployment.Spec.Template = template
		if err := f.hub.Update(f.Context(), deployment); err != nil {
			return err.Error()
		}

		return ""
	})
}

// cleanUp removes the objects that the fixture has left on the clusters.
func (f *fixture) cleanUp() {
	bundletest.Delete(f, f.hub, &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: f.name}})

	for _, bundle := range f.bundles() {
		bundletest.Delete(f, f.hub, &bundle)
	}

	for _, object := range f.labelled() {
		bundletest.Delete(f, f.on, object)
	}
}

// replica is a program that is restarted whenever it ends, as Kubernetes restarts containers.
type replica struct {
	f         *fixture
	path      string
	variables []string
	address   string

	mutex   sync.Mutex
	program *harness.Program
	stopped bool
	// starts is the number of starts so far.
	starts int
}

func newBundler(f *fixture, kubeconfig string) *replica {
	f.Helper()

	return newReplica(f, bundler, append([]string{"APP_KUBECONFIG_PATH=" + kubeconfig, "APP_STORE_DIR=" + f.TempDir()}, f.variables...)...)
}

// newReplica starts a program with additional environment variables.
func newReplica(f *fixture, path string, variables ...string) *replica {
	f.Helper()

	r := &replica{f: f, path: path, address: harness.FreeAddress(f)}
	r.variables = append([]string{"APP_ADDRESS=" + r.address, "APP_STATUS_ADDRESS=" + harness.FreeAddress(f)}, variables...)

	r.start()

	return r
}

// start starts the program, unless the test ends.
func (r *replica) start() {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	if r.stopped {
		return
	}

	program := harness.Launch(r.f, r.variables, r.path)
	r.program = program
	r.starts++
	r.f.Cleanup(func() {
		r.mutex.Lock()
		r.stopped = true
		r.mutex.Unlock()
	})

	go func() {
		<-program.Ended
		r.start()
	}()
}

// running returns the current process.
func (r *replica) running() *harness.Program {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	return r.program
}

// startsSoFar returns how many times the program was started.
func (r *replica) startsSoFar() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	return r.starts
}

// kill kills the process with SIGKILL. It returns false, because the call at whose point it is called ends with the process.
func (r *replica) kill() (alive bool) {
	r.running().Kill()

	return false
}

// ctx returns a context that the end of the test does not cancel.
func ctx(f *fixture) context.Context { return context.WithoutCancel(f.Context()) }
