package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/bundle/content"
	"github.com/environment-broker/environment-broker/bundle/controller/bundles"
	"github.com/environment-broker/environment-broker/bundle/controller/deployments"
	"github.com/environment-broker/environment-broker/bundle/renderer"
	"github.com/environment-broker/environment-broker/bundle/source"
	"github.com/environment-broker/environment-broker/bundle/store"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/program/reload"
)

const (
	// minRetry is the pause after the first failed attempt to unpack a Bundle.
	minRetry = time.Second
	// stopTimeout limits how long the components may take to stop after the shutdown delay.
	stopTimeout = 20 * time.Second
)

// Service is a bundle provisioner that is ready to run. Its listeners are already open.
type Service struct {
	config   Config
	log      logrus.FieldLogger
	manager  manager.Manager
	contents contents
	unpacker *bundles.Unpacker
	health   *httpserver.Health
	watcher  *reload.Watcher
	server   *httpserver.Server
	status   *httpserver.Server
	external string
	renderer *renderer.Renderer
	// temporary is the folder for files that only this process uses.
	temporary string
}

// New checks the configuration, builds the service and opens its listeners. If cluster is nil, the service connects to the
// configured cluster. The error for an invalid configuration names the variables with invalid values.
func New(ctx context.Context, settings Config, cluster *rest.Config, log logrus.FieldLogger) (*Service, error) {
	err := settings.check()

	if cluster == nil && err == nil {
		cluster, err = connect(settings.KubeconfigPath)
	}

	if err != nil {
		return nil, err
	}

	s := &Service{config: settings, log: log, renderer: settings.renderer()}
	s.health = httpserver.NewHealth(s.ready, log)
	s.watcher = reload.NewWatcher(log, clock.RealClock{}, s.health.Registry())

	files, err := store.New(settings.StoreDir)
	if err != nil {
		return nil, fmt.Errorf("APP_STORE_DIR: %w", err)
	}

	s.contents = contents{Store: files, maxUpload: settings.Limits.CompressedBytes}

	for _, step := range []func(context.Context, *rest.Config) error{s.connectManager, s.addUnpacker, s.listen, s.addControllers} {
		if err := step(ctx, cluster); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}

	return s, nil
}

// Close releases the resources of a service that will not be run.
func (s *Service) Close() error {
	errs := []error{s.contents.Close()}

	for _, server := range []*httpserver.Server{s.server, s.status} {
		if server != nil {
			errs = append(errs, server.Close())
		}
	}

	return errors.Join(errs...)
}

func connect(kubeconfig string) (*rest.Config, error) {
	cluster, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("APP_KUBECONFIG_PATH: %w", err)
	}

	cluster.QPS = -1 // no limit in the client, because the API server has its own; at 5 calls per second, the default, 100 objects would take a minute

	return cluster, nil
}

func (s *Service) connectManager(_ context.Context, cluster *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("registering kinds: %w", err)
	}

	skip := true // several services may run in one process, as in tests

	built, err := ctrl.NewManager(cluster, manager.Options{
		Scheme: scheme, Logger: logging.Logr(s.log).WithName("controller-runtime"), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller:     config.Controller{SkipNameValidation: &skip},
		LeaderElection: s.config.LeaderElection, LeaderElectionID: s.config.lease(), LeaderElectionNamespace: s.config.Namespace,
		LeaderElectionReleaseOnCancel: true,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{s.config.Namespace: {}}},
			&corev1.Secret{}:    {Namespaces: map[string]cache.Config{s.config.Namespace: {}}},
		}},
	})
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}

	s.manager = built

	return nil
}

func (s *Service) addUnpacker(context.Context, *rest.Config) error {
	var err error
	if s.temporary, err = s.contents.Temporary(); err != nil {
		return fmt.Errorf("APP_STORE_DIR: %w", err)
	}

	if keys := s.config.Sources.ImageKeysFile; keys != "" {
		if err := source.CheckKeys(keys); err != nil {
			return fmt.Errorf("APP_SOURCES_IMAGE_KEYS_FILE: %w", err)
		}
	}

	sources := source.New(source.Options{
		Reader: s.manager.GetAPIReader(), Namespace: s.config.Namespace, Uploads: s.contents.Store, Limits: s.limits(), Timeout: s.config.Bundles.Timeout,
		Temporary: s.temporary, KeysFile: s.config.Sources.ImageKeysFile,
	})

	enabled := map[v1alpha1.SourceType]bool{
		v1alpha1.SourceTypeImage: s.config.Sources.Image, v1alpha1.SourceTypeGit: s.config.Sources.Git, v1alpha1.SourceTypeHTTP: s.config.Sources.HTTP,
		v1alpha1.SourceTypeConfigMaps: s.config.Sources.ConfigMaps, v1alpha1.SourceTypeUpload: s.config.Sources.Upload,
	}
	maps.DeleteFunc(sources, func(name v1alpha1.SourceType, _ source.Fetcher) bool { return !enabled[name] })

	s.unpacker, err = bundles.NewUnpacker(bundles.UnpackerOptions{
		Source: fetcher{sources}, Store: s.contents, Classes: s.config.classes(s.renderer),
		Workers: s.config.Bundles.Workers, Timeout: s.config.Bundles.Timeout, Retry: minRetry, MaxRetry: s.config.Bundles.MaxRetry,
		Folder: s.temporary, Registry: s.health.Registry(), Log: logging.Logr(s.log),
	})

	return err
}

// listen opens the listeners of the content server and of the status endpoints.
func (s *Service) listen(ctx context.Context, cluster *rest.Config) error {
	access, err := content.NewAccess(cluster, s.config.AccessCache, logging.Logr(s.log))
	if err != nil {
		return err
	}

	s.server, err = httpserver.Listen(ctx, s.config.Address, access.Protect(content.NewServer(content.Options{
		Bundles: s.manager.GetClient(), Live: s.manager.GetAPIReader(), Store: s.contents, Fill: s.unpacker.Fill, Uploaded: s.unpacker.Wake,
		Leading:   s.leading,
		Ours:      s.unpacks,
		MaxUpload: s.config.Limits.CompressedBytes, Log: logging.Logr(s.log),
	})), s.config.ShutdownDelay)
	if err != nil {
		return fmt.Errorf("APP_ADDRESS: %w", err)
	}

	s.external = s.config.ExternalAddress
	if s.external == "" {
		s.external = "https://" + s.server.Address()
	}

	files := reload.ServerTLS{CertFile: s.config.TLS.CertFile, KeyFile: s.config.TLS.KeyFile}
	if s.config.TLS.SelfSigned {
		if files.CertFile, files.KeyFile, err = selfSigned(s.config.StoreDir, s.external); err != nil {
			return err
		}
	}

	encrypted, err := files.Config(s.watcher)
	if err != nil {
		return fmt.Errorf("APP_TLS_CERT_FILE, APP_TLS_KEY_FILE: %w", err)
	}

	s.server.UseTLS(encrypted, s.log)

	status := http.NewServeMux()
	status.Handle("/", s.health.Handler())
	status.Handle("GET /metrics/controllers", promhttp.HandlerFor(controllermetrics.Registry, promhttp.HandlerOpts{}))

	if s.status, err = httpserver.Listen(ctx, s.config.StatusAddress, status, s.config.ShutdownDelay); err != nil {
		return fmt.Errorf("APP_STATUS_ADDRESS: %w", err)
	}

	return nil
}

func (s *Service) addControllers(_ context.Context, cluster *rest.Config) error {
	if s.config.Bundles.Enabled {
		if err := bundles.Add(s.manager, bundles.Options{
			Unpacker: s.unpacker, Namespace: s.config.Namespace, CleanUp: s.cleanUp,
			ContentURL: func(name string) string { return content.URL(s.external, name) },
			UploadURL:  func(name string) string { return content.UploadURL(s.external, name) },
		}); err != nil {
			return err
		}
	}

	if s.config.Deployments.Enabled {
		return s.addDeployments(cluster)
	}

	return nil
}

// addDeployments adds a BundleDeployment controller for each class. The controllers fetch all content from the contentURL of the
// Bundle, even if this service has unpacked the Bundle, because another provisioner may have unpacked it.
func (s *Service) addDeployments(cluster *rest.Config) error {
	settings := s.config.Deployments
	access := content.ClientOptions{TokenFile: settings.TokenFile, CAFile: settings.CAFile, Timeout: settings.ContentTimeout, Limits: s.limits()}

	if access.TokenFile == "" {
		access.Token, access.TokenFile = cluster.BearerToken, cluster.BearerTokenFile
	}

	if access.Token == "" && access.TokenFile == "" {
		return errors.New("APP_DEPLOYMENTS_TOKEN_FILE: the kubeconfig has no token; name a file with the token of a ServiceAccount that has the ClusterRole bundle-reader")
	}

	if access.CAFile == "" && s.config.TLS.SelfSigned {
		access.CAFile = filepath.Join(s.config.StoreDir, certificateFile)
	}

	client, err := content.NewClient(access)
	if err != nil {
		return fmt.Errorf("APP_DEPLOYMENTS_TOKEN_FILE, APP_DEPLOYMENTS_CA_FILE: %w", err)
	}

	contents := map[string]deployments.Content{settings.PlainClass: deployments.Plain{Fetcher: client, Folder: s.temporary}}
	if s.config.Rendering.Enabled {
		contents[settings.HelmClass] = deployments.Chart{Fetcher: client, Folder: s.temporary, Renderer: s.renderer}
	}

	for class, content := range contents {
		if err := s.addClass(cluster, class, content); err != nil {
			return err
		}
	}

	return nil
}

// addClass adds the BundleDeployment controller of a class.
func (s *Service) addClass(cluster *rest.Config, class string, content deployments.Content) error {
	settings := s.config.Deployments

	controller, err := deployments.New(deployments.Options{
		Class: class, Client: s.manager.GetClient(), Reader: s.manager.GetAPIReader(), Namespace: s.config.Namespace, Hub: cluster,
		Content: content, Events: s.manager.GetEventRecorder("bundle-provisioner"), Now: time.Now,
		HealthInterval: settings.HealthInterval, DriftInterval: settings.DriftInterval, ResyncInterval: settings.ResyncInterval,
		UnreachableInterval: settings.UnreachableInterval, Registry: s.health.Registry(),
	})
	if err != nil {
		return err
	}

	return controller.Setup(s.manager)
}

// unpacks reports whether this service unpacks the Bundles of a class.
func (s *Service) unpacks(class string) bool {
	return s.config.Bundles.Enabled && slices.ContainsFunc(s.config.classes(s.renderer), func(ours bundles.Class) bool { return ours.Name == class })
}

// limits returns the configured limits for a Bundle's content.
func (s *Service) limits() archive.Limits {
	return archive.Limits{
		CompressedBytes: s.config.Limits.CompressedBytes, Bytes: s.config.Limits.Bytes, Files: s.config.Limits.Files, Depth: s.config.Limits.Depth,
	}
}

// Address returns the address that clients use to reach the content server.
func (s *Service) Address() string { return s.external }

// StatusAddress returns the host and port of the status endpoints.
func (s *Service) StatusAddress() string { return s.status.Address() }

// leading reports whether the controllers run in this replica.
func (s *Service) leading() bool {
	select {
	case <-s.manager.Elected():
		return true
	default:
		return false
	}
}

// ready succeeds once the replica has read all Bundles into its cache.
func (s *Service) ready(ctx context.Context) error {
	if !s.manager.GetCache().WaitForCacheSync(ctx) {
		return errors.New("the Bundles have not been read yet")
	}

	return nil
}

// Run runs the service until the context ends or a component fails.
func (s *Service) Run(ctx context.Context) error {
	defer func() { _ = s.contents.Close() }()

	sweep := lifecycle.Periodic{Name: "store sweep", Every: s.config.SweepInterval, Work: s.sweep, Clock: clock.RealClock{}, Log: s.log}

	return lifecycle.Run(ctx, s.log, s.config.ShutdownDelay+stopTimeout,
		lifecycle.Part{Name: "status", Run: s.status.Run},
		s.watcher.Part(),
		lifecycle.Part{Name: "health", Run: s.health.Run},
		lifecycle.Part{Name: "controllers", Run: s.manager.Start},
		lifecycle.Part{Name: "unpacker", Run: s.unpacker.Run},
		sweep.Part(),
		lifecycle.Part{Name: "content server", Run: s.server.Run},
	)
}

// sweep removes the content that no Bundle uses, and the uploads that neither a Bundle nor a rollback needs.
func (s *Service) sweep(ctx context.Context) error {
	if !s.manager.GetCache().WaitForCacheSync(ctx) {
		return nil // the service is stopping
	}

	list := &v1alpha1.BundleList{}
	if err := s.manager.GetClient().List(ctx, list); err != nil {
		return fmt.Errorf("listing Bundles: %w", err)
	}

	digests, names := map[store.Digest]bool{}, map[string]bool{}
	for i := range list.Items {
		digests[store.Digest(list.Items[i].Status.Digest)], names[list.Items[i].Name] = true, true
	}

	kept, err := s.keptUploads(ctx)
	if err != nil {
		return err
	}

	maps.Copy(names, kept)

	removed, err := s.contents.Sweep(ctx, func(digest store.Digest) bool { return digests[digest] }, func(name string) bool { return names[name] })
	if removed > 0 {
		s.log.WithField("files", removed).Info("removed content that no Bundle uses")
	}

	if err != nil {
		return fmt.Errorf("removing unused content: %w", err)
	}

	return nil
}
