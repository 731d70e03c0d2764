package service

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/provisioner/installation/bundles"
)

// Bundles configures the bundle provisioner that installs the components of Kyma. If none is configured, the Provisioner installs
// them itself.
type Bundles struct {
	KubeconfigPath  string        `env:"KUBECONFIG_PATH"  help:"path of the kubeconfig for the cluster of a bundle provisioner, which then installs the components of Kyma on new runtimes; reloaded when the file changes; if empty, the Provisioner installs them itself"`
	Namespace       string        `env:"NAMESPACE"        help:"namespace of the bundle provisioner, in which the Provisioner keeps the kubeconfigs of runtimes"`
	Class           string        `env:"CLASS"            help:"provisioner class of the Bundles and BundleDeployments; its format must be plain+v0"`
	ContentAddress  string        `env:"CONTENT_ADDRESS"  help:"https address of the content server of the bundle provisioner; required if the kubeconfig path is set"`
	TokenFile       string        `env:"TOKEN_FILE"       help:"file with the token for the content server; if empty, the token of the kubeconfig is used"`
	CAFile          string        `env:"CA_FILE"          help:"file with the CA certificates for the content server; if empty, the system's CA certificates are used"`
	DeletionTimeout time.Duration `env:"DELETION_TIMEOUT" help:"maximum time to wait for the deletion of the objects of a removed component"`
	Calls           int           `env:"CALLS"            help:"maximum number of concurrent calls to the cluster of the bundle provisioner, per replica"`
}

// check returns one error that lists all invalid settings. It does not read any files.
func (b Bundles) check() error {
	if b.KubeconfigPath == "" {
		return nil
	}

	var errs []error

	for _, rule := range []struct {
		broken  bool
		problem string
	}{
		{b.ContentAddress == "", "APP_KYMA_BUNDLES_CONTENT_ADDRESS: set the address of the content server"},
		{len(validation.IsDNS1123Label(b.Namespace)) > 0, "APP_KYMA_BUNDLES_NAMESPACE: must be the name of a namespace"},
		{len(validation.IsDNS1123Label(b.Class)) > 0, "APP_KYMA_BUNDLES_CLASS: must be a DNS label: at most 63 lower-case letters, digits and hyphens"},
		{b.DeletionTimeout <= 0, "APP_KYMA_BUNDLES_DELETION_TIMEOUT: must be positive"},
		{b.Calls < 1, "APP_KYMA_BUNDLES_CALLS: must be at least 1"},
	} {
		if rule.broken {
			errs = append(errs, errors.New(rule.problem))
		}
	}

	return errors.Join(errs...)
}

// connectBundles makes the configured bundle provisioner install the components. If none is configured, it does nothing. It reads
// the files that are configured, but does not send requests.
func (a *assembly) connectBundles(found kymaReleases) error {
	config := a.config.Kyma.Bundles
	if config.KubeconfigPath == "" {
		return nil
	}

	system := upstream.New(upstream.Options{
		Name: "bundles", Title: "the cluster of the bundle provisioner", Component: failure.ComponentBundles,
		Calls: config.Calls, Variable: "APP_KYMA_BUNDLES_CALLS",
	})

	hub, err := bundles.Follow(config.KubeconfigPath, a.Access.Files, system.Transport)
	if err != nil {
		return fmt.Errorf("APP_KYMA_BUNDLES_KUBECONFIG_PATH: %w", err)
	}

	uploads, err := bundles.NewUploads(bundles.UploadsOptions{
		Address: config.ContentAddress, Credentials: hub.Config, TokenFile: config.TokenFile, CAFile: config.CAFile,
	})
	if err != nil {
		return fmt.Errorf("APP_KYMA_BUNDLES_CONTENT_ADDRESS, APP_KYMA_BUNDLES_TOKEN_FILE, APP_KYMA_BUNDLES_CA_FILE: %w", err)
	}

	installer := bundles.New(bundles.Options{
		Hub: hub.Client, Namespace: config.Namespace, Class: config.Class, Uploads: uploads,
		Manifests: found.manifests, Direct: found.direct,
		Kubeconfigs: a.parts.Shoots, Validity: a.config.Gardener.KubeconfigValidity,
		DeletionTimeout: config.DeletionTimeout, Now: time.Now,
	})

	a.parts.Installer, a.parts.ForgetBundles = installer, installer.Forget
	a.guard("the bundle provisioner", system, hub.Probe)

	keeper := bundles.Keeper{Installer: installer, Runtimes: a.runtimes, Clock: clock.RealClock{}, Log: a.Log}
	a.background = append(a.background, keeper.Parts()...)

	return nil
}
