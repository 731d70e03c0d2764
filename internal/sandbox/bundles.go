package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakehub"
)

const (
	// bundlesKubeconfig is the name of the kubeconfig file for the Bundle API server. It contains a token for bundlesAccount.
	bundlesKubeconfig = "bundles.kubeconfig"
	// Subfolders of the sandbox's folder: bundlesFolder contains the fetched content of Bundles, and hubFolder contains the objects
	// of the simulated API server.
	bundlesFolder, hubFolder = "bundles", "bundles-hub"
	// bundlesNamespace is the bundle provisioner's namespace on the Bundle API server.
	bundlesNamespace = "bundle-system"
	// bundlesAccount is the ServiceAccount that the bundle provisioner and its users share. It has the cluster-admin role.
	bundlesAccount = "sandbox"
	// bundlesToken is how long a token for bundlesAccount is valid. Each start of the sandbox issues a new token.
	bundlesToken = 365 * 24 * time.Hour
	// prepareTimeout limits bundler.prepare, which calls the Bundle API server.
	prepareTimeout = 30 * time.Second
)

// bundler runs the sandbox's bundle provisioner. The bundle provisioner is a separate program, because linking it into the
// sandbox would make the first build of the sandbox much slower.
type bundler struct {
	config  Config
	command string
	// begin is closed when the other services are ready. The bundle provisioner starts only then, so that it does not delay their
	// start.
	begin chan struct{}
	// cluster is the administrator's connection to the Bundle API server. If it is nil, run starts a simulated API server.
	cluster *rest.Config
	hubLog  logrus.FieldLogger
	// resources applies the bundle provisioner's CustomResourceDefinitions and roles. It is nil for the simulated API server, which
	// does not need them.
	resources func(ctx context.Context, api client.Client) error
	log       io.Writer
	// status receives the address of the readiness endpoint once the program starts.
	status chan string
}

// startBundler returns a bundler and the lifecycle parts that run it. The bundler is nil if bundles are turned off or command is
// empty. Nothing starts until the parts run.
func startBundler(config Config, command string, garden openGarden, logFile io.Writer, log logrus.FieldLogger,
) (*bundler, []lifecycle.Part, error) {
	if !config.Bundles || command == "" {
		return nil, nil, nil
	}

	made := &bundler{
		config: config, command: command, begin: make(chan struct{}), hubLog: log.WithField(logging.Service, "hub"), log: logFile,
		status: make(chan string, 1),
	}
	part := lifecycle.Part{Name: "bundler", Run: made.run}

	if garden.kubeconfig == "" {
		return made, []lifecycle.Part{part}, nil
	}

	// The kubeconfig that the garden prints gives access only to Gardener's objects, so use the administrator's kubeconfig.
	cluster, err := clientcmd.BuildConfigFromFlags("", filepath.Join(filepath.Dir(garden.kubeconfig), "admin.kubeconfig"))
	if err == nil {
		err = rest.LoadTLSFiles(cluster)
	}

	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the Bundle API server: %w", err)
	}

	made.cluster, made.resources = cluster, applyResources

	return made, []lifecycle.Part{part}, nil
}

// run waits until the other services are ready, and then runs the bundle provisioner until the context ends.
func (b *bundler) run(ctx context.Context) (err error) {
	select {
	case <-b.begin:
	case <-ctx.Done():
		return nil
	}

	if b.cluster == nil {
		err = b.runWithHub(ctx)
	} else {
		err = b.runProgram(ctx)
	}

	if ctx.Err() != nil {
		err = nil
	}

	return err
}

// runWithHub runs the bundle provisioner with a simulated API server. It stops the API server only after the bundle provisioner
// has ended.
func (b *bundler) runWithHub(ctx context.Context) error {
	hub, err := fakehub.Open(ctx, filepath.Join(b.config.Dir, hubFolder), b.hubLog)
	if err != nil {
		return err
	}

	b.cluster = hub.Config()
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	group, ctx := errgroup.WithContext(ctx)

	group.Go(func() error { return hub.Run(serving) })
	group.Go(func() error {
		defer stop()

		return b.runProgram(ctx)
	})

	return group.Wait() //nolint:wrapcheck // the error names the part that failed
}

// runProgram prepares the API server and runs the bundle provisioner until the context ends.
func (b *bundler) runProgram(ctx context.Context) error {
	if err := b.prepare(ctx); err != nil {
		return err
	}

	return b.serve(ctx)
}

// announce starts the bundle provisioner, waits until it is ready, and prints how to use it. It does nothing if b is nil, and
// prints nothing if the context ends first.
func (b *bundler) announce(ctx context.Context, output io.Writer) {
	if b == nil {
		return
	}

	close(b.begin)

	select {
	case status := <-b.status:
		if ready(ctx, status) == nil {
			fmt.Fprintf(output, "  The bundle provisioner is ready: ebctl bundle list --kubeconfig %s\n", b.kubeconfig())
		}
	case <-ctx.Done():
	}
}

// kubeconfig returns the path of the kubeconfig file for the bundle provisioner and its users.
func (b *bundler) kubeconfig() string { return filepath.Join(b.config.Dir, bundlesKubeconfig) }

// prepare creates the objects that the bundle provisioner needs on its API server, and writes the kubeconfig with a new token.
func (b *bundler) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()

	scheme := k8sruntime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("preparing the Bundle API server: %w", err)
	}

	api, err := client.New(b.cluster, client.Options{Scheme: scheme})
	if err == nil && b.resources != nil {
		err = b.resources(ctx, api)
	}

	if err == nil {
		err = b.createObjects(ctx, api)
	}

	return failure.While(err, "preparing the Bundle API server")
}

// createObjects creates the namespace, the ServiceAccount and its role binding unless they exist, and writes the kubeconfig with
// a new token.
func (b *bundler) createObjects(ctx context.Context, api client.Client) error {
	namespace := bundlesNamespace
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: bundlesAccount, Namespace: namespace}}

	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		account,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "bundle-provisioner-sandbox"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: bundlesAccount}},
		},
	} {
		if err := api.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}

	seconds := int64(bundlesToken.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}

	if err := api.SubResource("token").Create(ctx, account, request); err != nil {
		return err
	}

	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"bundles": {
			Server: b.cluster.Host, CertificateAuthorityData: b.cluster.CAData, TLSServerName: b.cluster.ServerName,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{bundlesAccount: {Token: request.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"bundles": {Cluster: "bundles", AuthInfo: bundlesAccount, Namespace: namespace}},
		CurrentContext: "bundles",
	})
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}

	return atomicfile.Write(b.kubeconfig(), kubeconfig)
}
