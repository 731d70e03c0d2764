package service

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/bundle/controller/bundles"
	"github.com/environment-broker/environment-broker/bundle/format"
	"github.com/environment-broker/environment-broker/bundle/renderer"
	"github.com/environment-broker/environment-broker/internal/logging"
)

// defaultLease is the name of the lease of a service that runs both controllers. A service that runs only one of them adds a
// suffix.
const defaultLease = "bundle-provisioner"

// minMemory is the memory, in bytes, that rendering even a small bundle requires.
const minMemory = 256 << 20

// Config is the configuration of the bundle provisioner.
type Config struct {
	Address         string        `env:"ADDRESS"          help:"host and port of the content server"`
	ExternalAddress string        `env:"EXTERNAL_ADDRESS" help:"address of the content server for clients, such as https://bundles.example.com; the contentURL of each Bundle begins with it; empty means https:// followed by APP_ADDRESS"`
	StatusAddress   string        `env:"STATUS_ADDRESS"   help:"host and port of the endpoints for health, readiness and metrics"`
	ShutdownDelay   time.Duration `env:"SHUTDOWN_DELAY"   help:"how long a replica continues to serve requests after SIGTERM, which gives load balancers time to notice the shutdown"`

	Log logging.Config `envPrefix:""`
	TLS TLS            `envPrefix:"TLS_"`

	KubeconfigPath string        `env:"KUBECONFIG_PATH" help:"path of the kubeconfig for the cluster of the Bundles; empty means the ServiceAccount of the pod"`
	Namespace      string        `env:"NAMESPACE"       help:"namespace of the provisioner, which contains the Secrets and ConfigMaps that sources name, and the lease of the leader"`
	LeaderElection bool          `env:"LEADER_ELECTION" help:"elect the replica that runs the controllers; required with more than one replica"`
	LeaseName      string        `env:"LEASE_NAME"      help:"name of the lease of the leader; empty means bundle-provisioner, followed by -bundles or -deployments if only that controller is enabled; services with other classes in the same namespace need different names"`
	AccessCache    time.Duration `env:"ACCESS_CACHE"    help:"how long the content server caches permissions; revoking a token or a role takes effect after that time"`
	StoreDir       string        `env:"STORE_DIR"       help:"folder for the content of Bundles and for uploads"`
	SweepInterval  time.Duration `env:"SWEEP_INTERVAL"  help:"interval at which content that no Bundle uses is removed"`

	Bundles     Bundles     `envPrefix:"BUNDLES_"`
	Deployments Deployments `envPrefix:"DEPLOYMENTS_"`
	Sources     Sources     `envPrefix:"SOURCES_"`
	Limits      Limits      `envPrefix:"LIMITS_"`
	Rendering   Rendering   `envPrefix:"RENDERING_"`
}

// TLS configures the certificate of the content server.
type TLS struct {
	CertFile   string `env:"CERT_FILE"   help:"certificate of the content server, followed by its intermediate certificates; reloaded when the file changes"`
	KeyFile    string `env:"KEY_FILE"    help:"key of the certificate"`
	SelfSigned bool   `env:"SELF_SIGNED" help:"create a self-signed certificate, for trials; clients find it in tls.crt in the store's folder, and restarts keep it"`
}

// Bundles configures the Bundle controller.
type Bundles struct {
	Enabled        bool          `env:"ENABLED"         help:"run the Bundle controller"`
	PlainClass     string        `env:"PLAIN_CLASS"     help:"provisioner class of Bundles in the format plain+v0"`
	RegistryClass  string        `env:"REGISTRY_CLASS"  help:"provisioner class of Bundles in the format registry+v1, which are converted to plain+v0"`
	HelmClass      string        `env:"HELM_CLASS"      help:"provisioner class of Bundles in the format helm+v3"`
	KustomizeClass string        `env:"KUSTOMIZE_CLASS" help:"provisioner class of Bundles with a kustomization, which are converted to plain+v0"`
	Workers        int           `env:"WORKERS"         help:"maximum number of Bundles that are unpacked at the same time"`
	Timeout        time.Duration `env:"TIMEOUT"         help:"maximum duration of an attempt to unpack a Bundle"`
	MaxRetry       time.Duration `env:"MAX_RETRY"       help:"maximum pause between failed attempts to unpack a Bundle"`
}

// Deployments configures the BundleDeployment controller.
type Deployments struct {
	Enabled        bool          `env:"ENABLED"         help:"run the BundleDeployment controller"`
	PlainClass     string        `env:"PLAIN_CLASS"     help:"provisioner class of BundleDeployments that install bundles in the format plain+v0"`
	HelmClass      string        `env:"HELM_CLASS"      help:"provisioner class of BundleDeployments that install bundles in the format helm+v3"`
	TokenFile      string        `env:"TOKEN_FILE"      help:"file with the token that the controller sends to the contentURL of Bundles; empty means the token of the ServiceAccount or kubeconfig"`
	CAFile         string        `env:"CA_FILE"         help:"file with the CA certificates for contentURL; empty means the system's CA certificates, or the self-signed certificate"`
	ContentTimeout time.Duration `env:"CONTENT_TIMEOUT" help:"maximum time to read the content of a Bundle"`
	HealthInterval time.Duration `env:"HEALTH_INTERVAL" help:"interval at which the health of installed objects is read while they are not watched or not healthy"`
	DriftInterval  time.Duration `env:"DRIFT_INTERVAL"  help:"interval at which installed objects that are not watched are compared with their Bundle and repaired"`
	ResyncInterval time.Duration `env:"RESYNC_INTERVAL" help:"interval at which watched objects are compared with their Bundle, in case a change was missed"`

	UnreachableInterval time.Duration `env:"UNREACHABLE_INTERVAL" help:"interval between attempts to reach a cluster that does not respond or rejects its kubeconfig"`
}

// Rendering limits the processes that render charts and kustomizations.
type Rendering struct {
	// Enabled is true if the executable calls engines.Main. Otherwise, there are no classes for charts and kustomizations.
	Enabled bool `env:"-"`

	Timeout     time.Duration `env:"TIMEOUT"      help:"maximum time to render a chart or a kustomization"`
	MemoryBytes int64         `env:"MEMORY_BYTES" help:"maximum memory of a rendering process, in bytes"`
	OutputBytes int64         `env:"OUTPUT_BYTES" help:"maximum size of the rendered objects of a bundle in bytes"`
	Processes   int           `env:"PROCESSES"    help:"maximum number of concurrent renderings"`
}

// renderer returns a renderer with the configured limits.
func (c Config) renderer() *renderer.Renderer {
	return renderer.New(renderer.Options{
		Timeout: c.Rendering.Timeout, Memory: c.Rendering.MemoryBytes, Input: c.Limits.Bytes, Output: c.Rendering.OutputBytes,
		Processes: c.Rendering.Processes,
	})
}

// classes returns the provisioner classes for Bundles, with their formats.
func (c Config) classes(rendering *renderer.Renderer) []bundles.Class {
	classes := []bundles.Class{{Name: c.Bundles.PlainClass, Format: format.Plain{}}, {Name: c.Bundles.RegistryClass, Format: format.Registry{}}}
	if c.Rendering.Enabled {
		classes = append(classes, bundles.Class{Name: c.Bundles.HelmClass, Format: format.Helm{Renderer: rendering}},
			bundles.Class{Name: c.Bundles.KustomizeClass, Format: format.Kustomize{Renderer: rendering}})
	}

	return classes
}

// Sources selects the types of sources that Bundles may use. A Bundle with a type that is not enabled fails, and its status names the
// type.
type Sources struct {
	Image      bool `env:"IMAGE"       help:"permit Bundles with an image source"`
	Git        bool `env:"GIT"         help:"permit Bundles with a git source"`
	HTTP       bool `env:"HTTP"        help:"permit Bundles with an http source"`
	ConfigMaps bool `env:"CONFIG_MAPS" help:"permit Bundles with a configMaps source"`
	Upload     bool `env:"UPLOAD"      help:"permit Bundles with an upload source"`

	ImageKeysFile string `env:"IMAGE_KEYS_FILE" help:"file with cosign public keys in PEM form, read again for each image; every image must be signed with one of these keys, and with one of the keys in its Bundle if the Bundle lists any; if empty, only images of Bundles that list keys must be signed"`
}

// Limits restricts the content of a Bundle.
type Limits struct {
	CompressedBytes int64 `env:"COMPRESSED_BYTES" help:"maximum size of an archive or upload in bytes"`
	Bytes           int64 `env:"BYTES"            help:"maximum total size of the files of a bundle, in bytes"`
	Files           int   `env:"FILES"            help:"maximum number of files and folders of a bundle"`
	Depth           int   `env:"DEPTH"            help:"maximum nesting depth of folders"`
}

// DefaultConfig returns the default of each variable, as listed in docs/operator/configuration.md.
func DefaultConfig() Config {
	limits, rendering := archive.DefaultLimits(), renderer.DefaultOptions()

	return Config{
		Address: "127.0.0.1:8443", StatusAddress: "127.0.0.1:8081", ShutdownDelay: 2 * time.Second, Log: logging.DefaultConfig(),
		Namespace: "bundle-system", LeaderElection: true, AccessCache: time.Minute, StoreDir: "bundles", SweepInterval: 10 * time.Minute,
		Bundles: Bundles{
			Enabled: true, PlainClass: "core-rukpak-io-plain", RegistryClass: "core-rukpak-io-registry",
			HelmClass: "core-rukpak-io-helm", KustomizeClass: "core-rukpak-io-kustomize",
			Workers: 4, Timeout: 5 * time.Minute, MaxRetry: 5 * time.Minute,
		},
		Deployments: Deployments{
			Enabled: true, PlainClass: "core-rukpak-io-plain", HelmClass: "core-rukpak-io-helm", ContentTimeout: time.Minute,
			HealthInterval: time.Minute, DriftInterval: 10 * time.Minute, ResyncInterval: time.Hour, UnreachableInterval: 30 * time.Second,
		},
		Sources: Sources{Image: true, Git: true, HTTP: true, ConfigMaps: true, Upload: true},
		Limits:  Limits{CompressedBytes: limits.CompressedBytes, Bytes: limits.Bytes, Files: limits.Files, Depth: limits.Depth},
		Rendering: Rendering{
			Timeout: rendering.Timeout, MemoryBytes: rendering.Memory, OutputBytes: rendering.Output, Processes: rendering.Processes,
		},
	}
}

// lease returns the name of the lease. Services with different controllers must not share a lease, because only the leader runs its
// controllers.
func (c Config) lease() string {
	switch {
	case c.LeaseName != "":
		return c.LeaseName
	case !c.Deployments.Enabled:
		return defaultLease + "-bundles"
	case !c.Bundles.Enabled:
		return defaultLease + "-deployments"
	default:
		return defaultLease
	}
}

// check returns a single error that lists all invalid and conflicting settings. It does not read any files.
func (c Config) check() error {
	const bundleClasses = "APP_BUNDLES_PLAIN_CLASS, APP_BUNDLES_REGISTRY_CLASS, APP_BUNDLES_HELM_CLASS, APP_BUNDLES_KUSTOMIZE_CLASS"

	var (
		errs  []error
		names []string
	)

	for _, class := range c.classes(nil) {
		names = append(names, class.Name)
	}

	slices.Sort(names)

	for _, rule := range []struct {
		broken  bool
		problem string
	}{
		{!c.Bundles.Enabled && !c.Deployments.Enabled, "APP_BUNDLES_ENABLED, APP_DEPLOYMENTS_ENABLED: no controller is enabled"},
		{c.Namespace == "", "APP_NAMESPACE: set the namespace of the provisioner"},
		{len(validation.IsDNS1123Subdomain(c.lease())) > 0, "APP_LEASE_NAME: must be a DNS name of lower-case letters, digits, hyphens and dots"},
		{c.StoreDir == "", "APP_STORE_DIR: set a folder"},
		{c.Bundles.Workers < 1, "APP_BUNDLES_WORKERS: must be at least 1"},
		{c.Bundles.Timeout <= 0, "APP_BUNDLES_TIMEOUT: must be positive"},
		{c.Bundles.MaxRetry < minRetry, "APP_BUNDLES_MAX_RETRY: must be at least " + minRetry.String()},
		{
			slices.ContainsFunc(names, func(name string) bool { return len(validation.IsDNS1123Label(name)) > 0 }),
			bundleClasses + ": must be DNS labels: at most 63 lower-case letters, digits and hyphens",
		},
		{len(slices.Compact(slices.Clone(names))) < len(names), bundleClasses + ": must differ"},
		{
			len(validation.IsDNS1123Label(c.Deployments.PlainClass)) > 0 || len(validation.IsDNS1123Label(c.Deployments.HelmClass)) > 0,
			"APP_DEPLOYMENTS_PLAIN_CLASS, APP_DEPLOYMENTS_HELM_CLASS: must be DNS labels: at most 63 lower-case letters, digits and hyphens",
		},
		{
			c.Rendering.Enabled && c.Deployments.PlainClass == c.Deployments.HelmClass,
			"APP_DEPLOYMENTS_PLAIN_CLASS, APP_DEPLOYMENTS_HELM_CLASS: must differ",
		},
		{
			c.Rendering.Timeout <= 0 || c.Rendering.MemoryBytes < minMemory || c.Rendering.OutputBytes < 1 || c.Rendering.Processes < 1,
			"APP_RENDERING_TIMEOUT, APP_RENDERING_MEMORY_BYTES, APP_RENDERING_OUTPUT_BYTES, APP_RENDERING_PROCESSES: must be positive, and the memory at least 256 MiB",
		},
		{
			min(
				c.Deployments.ContentTimeout, c.Deployments.HealthInterval, c.Deployments.DriftInterval,
				c.Deployments.ResyncInterval, c.Deployments.UnreachableInterval,
			) <= 0,
			"APP_DEPLOYMENTS_CONTENT_TIMEOUT, APP_DEPLOYMENTS_HEALTH_INTERVAL, APP_DEPLOYMENTS_DRIFT_INTERVAL, APP_DEPLOYMENTS_RESYNC_INTERVAL, APP_DEPLOYMENTS_UNREACHABLE_INTERVAL: must be positive",
		},
		{c.SweepInterval <= 0, "APP_SWEEP_INTERVAL: must be positive"},
		{c.AccessCache <= 0, "APP_ACCESS_CACHE: must be positive"},
		{c.ShutdownDelay < 0, "APP_SHUTDOWN_DELAY: must not be negative"},
		{
			c.Limits.CompressedBytes < 1 || c.Limits.Bytes < 1 || c.Limits.Files < 1 || c.Limits.Depth < 1,
			"APP_LIMITS_COMPRESSED_BYTES, APP_LIMITS_BYTES, APP_LIMITS_FILES, APP_LIMITS_DEPTH: must be at least 1",
		},
		{
			c.TLS.SelfSigned == (c.TLS.CertFile != "" || c.TLS.KeyFile != ""),
			"APP_TLS_CERT_FILE, APP_TLS_KEY_FILE, APP_TLS_SELF_SIGNED: set both files, or a self-signed certificate for trials",
		},
	} {
		if rule.broken {
			errs = append(errs, errors.New(rule.problem))
		}
	}

	return errors.Join(errs...)
}
