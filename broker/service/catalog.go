package service

import (
	"context"
	"io/fs"
	"net/http"
	"os"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// catalogFiles returns the files in the configured folder, or else the files that are built into the binary.
func catalogFiles(config Config) fs.FS {
	if config.Catalog.Dir != "" {
		return os.DirFS(config.Catalog.Dir)
	}

	return resources.Catalog()
}

// loadCatalog loads the catalog with the settings of the configuration. If the files are invalid, it returns an error, and the
// broker does not start.
func loadCatalog(config Config) (*catalog.Catalog, error) {
	options := catalog.Options{
		KubernetesVersion: config.KubernetesVersion, OperationTimeout: config.Engine.OperationTimeout,
		EnablePlans: config.Catalog.EnablePlans,
		KymaVersion: config.Kyma.Version, KymaInstaller: config.Kyma.Installer, KymaVersionOnDemand: config.Kyma.OnDemandVersion,
		LifecycleManager: config.LifecycleManager.Enabled,
	}

	if config.OIDC.IssuerURL != "" {
		options.OIDC = catalog.NewOIDC(config.OIDC.IssuerURL, config.OIDC.ClientID)
	}

	if config.Catalog.OnlySingleTrialPerGA {
		options.OnePerAccount = append(options.OnePerAccount, "trial")
	}

	if config.Catalog.OnlyOneFreePerGA {
		options.OnePerAccount = append(options.OnePerAccount, "free")
	}

	return catalog.Load(catalogFiles(config), options)
}

// watch returns the lifecycle.Part that reloads the catalog when its files change. If the changed files are invalid, the old
// catalog stays in use and the error is reported.
func watch(config Config, offer *catalog.Catalog, recorder *audit.Recorder, log logrus.FieldLogger) lifecycle.Part {
	return catalog.Watcher{
		Catalog: offer, Files: catalogFiles(config), Clock: clock.RealClock{}, Log: log,
		Record: func(ctx context.Context, reload catalog.Reload) error {
			return recorder.RecordAlone(ctx, catalogEntry(reload))
		},
	}.Part()
}

// catalogEntry returns the audit entry for a change of the catalog files. It contains the catalog's entity tags before and after the
// change and, if the files are invalid, the error.
func catalogEntry(reload catalog.Reload) auditlog.Entry {
	entry := auditlog.Entry{Action: auditlog.ActionCatalog, Status: http.StatusOK, Reason: "The files of the catalog changed."}
	entry.Before, entry.After = auditlog.Difference(auditlog.Fields{"etag": reload.Before}, auditlog.Fields{"etag": reload.After})

	if reload.Problem != "" {
		entry.Status, entry.Reason = http.StatusUnprocessableEntity, reload.Problem
	}

	return entry
}
