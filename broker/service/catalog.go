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
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// catalogFiles are those of the folder that is configured, else those that the broker ships with.
func catalogFiles(config Config) fs.FS {
	if config.Catalog.Dir != "" {
		return os.DirFS(config.Catalog.Dir)
	}

	return resources.Catalog()
}

func loadCatalog(config Config) (*catalog.Catalog, error) {
	options := catalog.Options{
		KubernetesVersion: config.KubernetesVersion, OperationTimeout: config.Engine.OperationTimeout,
		EnablePlans: config.Catalog.EnablePlans,
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

// watch has the catalog follow its files.
func watch(config Config, offer *catalog.Catalog, store *instances.Store, trail *audit.Recorder, log logrus.FieldLogger) lifecycle.Part {
	return catalog.Watch{
		Catalog: offer, Files: catalogFiles(config), Since: store.CatalogSince, Clock: clock.RealClock{}, Log: log,
		Record: func(ctx context.Context, event catalog.Event) error {
			return trail.RecordAlone(ctx, catalogEntry(event))
		},
	}.Part()
}

// catalogEntry is what the audit trail tells of a change of the catalog's files.
func catalogEntry(event catalog.Event) auditlog.Entry {
	entry := auditlog.Entry{Action: auditlog.ActionCatalog, Status: http.StatusOK, Reason: "The files of the catalog have changed."}
	entry.Before, entry.After = auditlog.Difference(auditlog.Fields{"etag": event.Before}, auditlog.Fields{"etag": event.After})

	if event.Problem != "" {
		entry.Status, entry.Reason = http.StatusUnprocessableEntity, event.Problem
	}

	return entry
}
