//go:build garden

package clusterclient_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/test/apiserver"
)

// apiServer is a kube-apiserver that plays the runtime of an instance. access is the tested client, with an administrator's kubeconfig.
type apiServer struct {
	*testing.T
	client.Client

	environment *envtest.Environment
	access      clusterclient.Access
}

// startAPIServer runs a kube-apiserver until the test ends.
func startAPIServer(t *testing.T) *apiServer {
	t.Helper()

	s := &apiServer{T: t, environment: apiserver.Run(t)}
	s.Client = s.clientOf(s.environment.Config)
	s.access = clusterclient.New(kubeconfigs{text: secret.String(s.environment.KubeConfig)})

	return s
}

// in returns the server for a subtest.
func (s *apiServer) in(t *testing.T) *apiServer {
	t.Helper()

	sub := *s
	sub.T = t

	return &sub
}

// clientOf returns a client whose connections are closed when the test ends, because the tests of the package check for leaks.
func (s *apiServer) clientOf(config *rest.Config) client.Client {
	s.Helper()

	config = rest.CopyConfig(config)
	config.QPS = -1

	connections, err := rest.HTTPClientFor(config)
	s.must(err)
	s.Cleanup(connections.CloseIdleConnections)

	made, err := client.New(config, client.Options{HTTPClient: connections})
	s.must(err)

	return made
}

func (s *apiServer) must(err error) {
	s.Helper()

	if err != nil {
		s.Fatal(err)
	}
}

// withoutRights returns an Access whose user may do nothing.
func (s *apiServer) withoutRights() clusterclient.Access {
	s.Helper()

	user, err := s.environment.AddUser(envtest.User{Name: "nobody"}, nil)
	s.must(err)

	kubeconfig, err := user.KubeConfig()
	s.must(err)

	return clusterclient.New(kubeconfigs{text: secret.String(kubeconfig)})
}

// TestRealAPIServer runs the calls of the BTP service operator's steps on a kube-apiserver. The subtests share it, because its start takes
// seconds, and run one after the other.
func TestRealAPIServer(t *testing.T) {
	s := startAPIServer(t)

	t.Run("service instances", func(t *testing.T) { testServiceInstances(s.in(t)) })
	t.Run("Secret", func(t *testing.T) { testServiceManagerSecret(s.in(t)) })
	t.Run("terminating namespace", func(t *testing.T) { testTerminatingNamespace(s.in(t)) })
}

// testTerminatingNamespace checks that the Secret is written as soon as its namespace, which is being deleted, is gone. No
// namespace controller runs, so the test finishes the deletion.
func testTerminatingNamespace(s *apiServer) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kyma-system"}}
	stored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "sap-btp-manager", Namespace: "kyma-system"}}

	s.must(client.IgnoreAlreadyExists(s.Create(s.Context(), namespace.DeepCopy())))
	s.must(client.IgnoreNotFound(s.Delete(s.Context(), stored.DeepCopy())))
	s.must(s.Delete(s.Context(), namespace))

	if err := s.access.ApplyServiceManager(s.Context(), instance(), serviceManager()); !failure.Is(err, failure.Transient) {
		s.Errorf("the namespace can be created again soon, so the error can pass: %v", err)
	}

	connections, err := rest.HTTPClientFor(s.environment.Config)
	s.must(err)
	s.Cleanup(connections.CloseIdleConnections)

	clients, err := kubernetes.NewForConfigAndClient(s.environment.Config, connections)
	s.must(err)

	s.must(s.Get(s.Context(), client.ObjectKeyFromObject(namespace), namespace))
	namespace.Spec.Finalizers = nil

	_, err = clients.CoreV1().Namespaces().Finalize(s.Context(), namespace, metav1.UpdateOptions{})
	s.must(err)

	if err := s.Get(s.Context(), client.ObjectKeyFromObject(namespace), namespace); !apierrors.IsNotFound(err) {
		s.Fatalf("the namespace still exists: %v", err)
	}

	s.must(s.access.ApplyServiceManager(s.Context(), instance(), serviceManager()))
	s.must(s.Get(s.Context(), client.ObjectKeyFromObject(stored), stored))
}
