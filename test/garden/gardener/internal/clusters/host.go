package clusters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/sirupsen/logrus"
	clientv3 "go.etcd.io/etcd/client/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/atomicfile"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/apiserver"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/process"
)

// Config configures the API servers of runtimes.
type Config struct {
	// Dir is the folder of their certificates, with a folder for each API server.
	Dir string
	// Binaries is the folder of the executables, Logs the folder of the log files.
	Binaries string
	Logs     string
	// EtcdURL is the address of etcd, where each API server has a prefix of its own.
	EtcdURL string
	Ports   *process.Ports
	Log     logrus.FieldLogger
}

// hostDir returns the folder with the certificates and all other files of an API server.
func (c Config) hostDir(name string) string { return filepath.Join(c.Dir, name) }

// host is an API server that starts when a runtime needs it, and again after its process has ended. Its address, its authority
// and its objects survive the process.
type host struct {
	config       Config
	name         string
	certificates *apiserver.Certificates

	// mu guards the fields below, and is held while the API server starts.
	mu sync.Mutex
	// server is nil while the API server is stopped.
	server *apiserver.Server
	// clientCAs has the client authorities (PEM) by the technical ID of the runtime. It is empty after a restart of the garden,
	// until the gardenlet starts the runtimes again.
	clientCAs map[string][]byte
}

// openHost opens the certificates of an API server. It does not start the API server.
func openHost(config Config, name string) (*host, error) {
	certificates, err := apiserver.OpenCertificates(config.hostDir(name), name)
	if err != nil {
		return nil, err
	}
	return &host{config: config, name: name, certificates: certificates, clientCAs: map[string][]byte{}}, nil
}

// serve starts the host if necessary, makes it accept the client certificates of a runtime, which clientCA has issued, and
// returns its endpoint. It returns only when the API server accepts the certificates, so that an admin kubeconfig works as soon
// as Gardener issues one.
func (h *host) serve(ctx context.Context, runtime string, clientCA []byte) (gardenlet.Endpoint, error) {
	server, err := h.admit(ctx, runtime, clientCA)
	if err != nil {
		return gardenlet.Endpoint{}, err
	}
	if err := awaitTrust(ctx, server, clientCA); err != nil {
		return gardenlet.Endpoint{}, err
	}
	return gardenlet.Endpoint{URL: server.URL, CA: server.CA}, nil
}

// admit adds a client authority to the file of the host, and starts the host if it is stopped. The lock is held during the start,
// so that two runtimes of one host do not start its API server twice.
func (h *host) admit(ctx context.Context, runtime string, clientCA []byte) (*apiserver.Server, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !bytes.Equal(h.clientCAs[runtime], clientCA) {
		h.clientCAs[runtime] = clientCA
		if err := h.writeClientCAs(); err != nil {
			delete(h.clientCAs, runtime)
			return nil, err
		}
	}
	if h.server != nil {
		return h.server, nil
	}
	server, err := h.start(ctx)
	if err != nil {
		return nil, err
	}
	h.server = server
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer end()
		h.report(server)
	}()
	go h.endNamespaces(ctx, server)
	return server, nil
}

// forget removes the client authority of a runtime, whose admin kubeconfigs then stop working. Unknown runtimes are ignored.
func (h *host) forget(runtime string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.clientCAs[runtime]; !known {
		return nil
	}
	delete(h.clientCAs, runtime)
	return h.writeClientCAs()
}

// writeClientCAs writes the file of the client authorities. The caller holds the lock. The API server reads it again when it
// changes.
func (h *host) writeClientCAs() error {
	all := h.certificates.CA()
	for _, clientCA := range h.clientCAs {
		all = append(all, clientCA...)
	}
	return atomicfile.Write(h.clientCAFile(), all)
}

// clientCAFile returns the file that writeClientCAs writes and the API server watches.
func (h *host) clientCAFile() string { return h.certificates.Path("clients.crt") }

// start starts the API server at its port with the objects under its prefix in etcd. The port is the same at each start.
func (h *host) start(ctx context.Context) (*apiserver.Server, error) {
	number, err := h.config.Ports.Port(h.name)
	if err != nil {
		return nil, err
	}
	server, err := apiserver.Start(ctx, apiserver.Config{
		Name:         h.name,
		Binaries:     h.config.Binaries,
		Logs:         h.config.Logs,
		Port:         number,
		EtcdURL:      h.config.EtcdURL,
		EtcdPrefix:   etcdPrefix(h.name),
		Certificates: h.certificates,
		ClientCAFile: h.clientCAFile(),
	})
	if err != nil {
		return nil, err
	}
	if err := bindAdmins(ctx, server.Admin); err != nil {
		return nil, errors.Join(err, server.Kill())
	}
	h.config.Log.WithField("runtime", h.name).WithField("url", server.URL).Info("the API server of a runtime is ready")
	return server, nil
}

// report waits for the end of an API server and logs the end, unless the host was stopped. The next use of the runtime starts the
// API server again.
func (h *host) report(server *apiserver.Server) {
	<-server.Exited()
	if h.detach(server) {
		h.config.Log.WithField("runtime", h.name).WithError(server.Err()).Warn("the API server of a runtime has ended")
	}
}

// endNamespaces removes the deleted namespaces of an API server until the context ends, which is when the process of the API
// server ends.
func (h *host) endNamespaces(ctx context.Context, server *apiserver.Server) {
	log := h.config.Log.WithField("runtime", h.name)
	if err := endNamespaces(ctx, server.Admin, log); err != nil {
		log.WithError(err).Warn("deleted namespaces of a runtime are not removed")
	}
}

// detach forgets an API server that has ended. It returns false if the host was stopped or has started another API server
// meanwhile.
func (h *host) detach(server *apiserver.Server) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server != server {
		return false
	}
	h.server = nil
	return true
}

// stop kills the API server if it runs. The API server has no state, but would wait for open watches after SIGTERM.
func (h *host) stop() error {
	h.mu.Lock()
	server := h.server
	h.server = nil
	h.mu.Unlock()
	if server == nil {
		return nil
	}
	return server.Kill()
}

// etcdPrefix returns the prefix of the objects of an API server, which wipe deletes. The prefix of the garden itself is
// /registry.
func etcdPrefix(host string) string { return "/runtimes/" + host }

// wipe deletes the objects of an API server from etcd, so that a new runtime of the same name starts empty.
func wipe(ctx context.Context, etcdURL, host string) (err error) {
	client, err := clientv3.New(clientv3.Config{Context: ctx, Endpoints: []string{etcdURL}})
	if err != nil {
		return fmt.Errorf("connecting to etcd: %w", err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if _, err := client.Delete(ctx, etcdPrefix(host)+"/", clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("deleting the objects of %s: %w", host, err)
	}
	return nil
}

// bindAdmins grants the groups of admin kubeconfigs the administration of a runtime, as a gardenlet does.
func bindAdmins(ctx context.Context, admin *rest.Config) error {
	client, err := rbacclient.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("creating the client of a runtime: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: v1beta1constants.ShootProjectAdminsGroupName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	for _, group := range []string{v1beta1constants.ShootProjectAdminsGroupName, v1beta1constants.ShootSystemAdminsGroupName} {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
	}
	_, err = client.ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("binding the administrators of a runtime: %w", err)
	}
	return nil
}
