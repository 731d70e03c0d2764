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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/apiserver"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/process"
)

// Config configures the API servers of runtimes.
type Config struct {
	// Dir is the folder for certificates. It contains a subfolder for each API server.
	Dir string
	// Binaries is the folder that contains the executables. Logs is the folder for log files.
	Binaries string
	Logs     string
	// EtcdURL is the address of etcd. Each API server uses a separate prefix.
	EtcdURL string
	Ports   *process.Ports
	Log     logrus.FieldLogger
}

// hostDir returns the folder for the certificates and other files of an API server.
func (c Config) hostDir(name string) string { return filepath.Join(c.Dir, name) }

// host is an API server that starts when a runtime first needs it, and restarts when it is needed again after its process has
// exited. Its address, CA and objects outlive the process.
type host struct {
	config       Config
	name         string
	certificates *apiserver.Certificates

	// mu guards the fields below. It is held while the API server starts.
	mu sync.Mutex
	// server is nil while the API server is not running.
	server *apiserver.Server
	// clientCAs contains the client CAs (PEM), keyed by the technical ID of the runtime. After a restart of the garden, it is empty
	// until the gardenlet has started the runtimes again.
	clientCAs map[string][]byte
}

// openHost loads or creates the certificates of an API server. It does not start the API server.
func openHost(config Config, name string) (*host, error) {
	certificates, err := apiserver.OpenCertificates(config.hostDir(name), name)
	if err != nil {
		return nil, err
	}
	return &host{config: config, name: name, certificates: certificates, clientCAs: map[string][]byte{}}, nil
}

// serve makes the host accept client certificates that clientCA has issued for a runtime, and returns its endpoint. It starts the
// host if necessary. serve returns only after the API server accepts such certificates, so that an admin kubeconfig works as soon
// as Gardener issues it.
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

// admit adds a client CA to the client CA file and starts the host if it is not running. It holds the lock during the start, so
// that two runtimes of the same host cannot start the API server concurrently.
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
	go h.control(ctx, server, "remove deleted namespaces", endNamespaces)
	go h.control(ctx, server, "aggregate cluster roles", keepRolesAggregated)
	return server, nil
}

// forget removes a runtime's client CA, which invalidates its admin kubeconfigs. Unknown runtimes are ignored.
func (h *host) forget(runtime string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.clientCAs[runtime]; !known {
		return nil
	}
	delete(h.clientCAs, runtime)
	return h.writeClientCAs()
}

// writeClientCAs writes the file with the client CAs, which the API server reloads when it changes. The caller must hold the
// lock.
func (h *host) writeClientCAs() error {
	all := h.certificates.CA()
	for _, clientCA := range h.clientCAs {
		all = append(all, clientCA...)
	}
	return atomicfile.Write(h.clientCAFile(), all)
}

func (h *host) clientCAFile() string { return h.certificates.Path("clients.crt") }

// start starts the API server. It always uses the same port and the same prefix in etcd.
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
	if err := grantRoles(ctx, server.Admin); err != nil {
		return nil, errors.Join(err, server.Kill())
	}
	h.config.Log.WithField("runtime", h.name).WithField("url", server.URL).Info("the API server of a runtime is ready")
	return server, nil
}

// report waits until an API server has exited, and logs the exit unless the host was stopped. The next use of the runtime starts
// the API server again.
func (h *host) report(server *apiserver.Server) {
	<-server.Exited()
	if h.detach(server) {
		h.config.Log.WithField("runtime", h.name).WithError(server.Err()).Warn("the API server of a runtime has exited")
	}
}

// control runs a controller of an API server until the context ends. The context ends when the API server process exits. task
// completes the log message "a runtime cannot …".
func (h *host) control(ctx context.Context, server *apiserver.Server, task string,
	run func(ctx context.Context, admin *rest.Config, log logrus.FieldLogger) error,
) {
	log := h.config.Log.WithField("runtime", h.name)
	if err := run(ctx, server.Admin, log); err != nil {
		log.WithError(err).Warn("a runtime cannot " + task)
	}
}

// detach clears the reference to an API server that has exited. It returns false if the host was stopped or has already started
// another API server.
func (h *host) detach(server *apiserver.Server) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server != server {
		return false
	}
	h.server = nil
	return true
}

// stop kills the API server if it is running. A graceful stop has no benefit, because the API server has no state to save and
// would wait for open watches.
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

// etcdPrefix returns the prefix of an API server's objects in etcd. The prefix of the garden itself is /registry.
func etcdPrefix(host string) string { return "/runtimes/" + host }

// wipe deletes the objects of an API server from etcd, so that a new runtime with the same name starts empty.
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

// grantRoles makes the roles of a runtime effective before the runtime is used: it grants administrators their rights, and
// completes the aggregated roles.
func grantRoles(ctx context.Context, admin *rest.Config) error {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("creating the client of a runtime: %w", err)
	}
	if err := bindAdmins(ctx, client); err != nil {
		return err
	}
	return aggregateRoles(ctx, client)
}

// bindAdmins grants cluster-admin rights to the groups in admin kubeconfigs, as a real gardenlet does.
func bindAdmins(ctx context.Context, client kubernetes.Interface) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: v1beta1constants.ShootProjectAdminsGroupName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	for _, group := range []string{v1beta1constants.ShootProjectAdminsGroupName, v1beta1constants.ShootSystemAdminsGroupName} {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
	}
	_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("binding the administrators of a runtime: %w", err)
	}
	return nil
}
