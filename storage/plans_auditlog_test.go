package storage_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// auditlogCalls returns calls to the audit log, with a frequent and an absent value for each filter.
func (s stores) auditlogCalls() map[string]call {
	calls := map[string]call{
		"auditlog.Insert": func(ctx context.Context) error {
			return s.auditlog.Insert(ctx, s.db.Writer(), auditlog.Entry{ID: "new", Action: auditlog.ActionAccess, At: filledAt})
		},
		"auditlog.Remove": func(ctx context.Context) error {
			_, err := s.auditlog.Remove(ctx, filledAt.AddDate(-1, 0, 0), page)

			return err
		},
	}

	chainer := s.auditlog.Chain(auditlog.ChainOptions{
		Clock: clock.RealClock{}, Log: logging.Discard(), Metrics: prometheus.NewRegistry(),
	})
	calls["auditlog.Pass"] = chainer.Pass
	calls["auditlog.Remove with an archive"] = func(ctx context.Context) error {
		archiving := *s.auditlog
		archiving.ArchiveTo(auditlog.Archive{Dir: s.archive, Service: "broker", Chainer: chainer})

		if err := chainer.Pass(ctx); err != nil {
			return err
		}

		// The hashes of the filled rows are invalid, so the archive is refused after the segment was read.
		if _, err := archiving.Remove(ctx, filledAt.AddDate(2, 0, 0), page); !errors.Is(err, auditlog.ErrBroken) {
			return fmt.Errorf("want a broken chain, got %w", err)
		}

		return nil
	}
	calls["auditlog.ChainHead"] = func(ctx context.Context) error {
		_, err := s.auditlog.ChainHead(ctx)

		return err
	}
	calls["auditlog.ChainRecords"] = func(ctx context.Context) error {
		_, err := s.auditlog.ChainRecords(ctx, 50_000, page)

		return err
	}

	for name, cursor := range map[string]string{
		"of records": "\n\n50000", "of entries": "entry\n2029-05-01T00:00:00.000000Z\ne1", "of rows": "operation\n2029-05-01T00:00:00.000000Z\np1",
	} {
		calls["auditlog.ChainPage "+name] = func(ctx context.Context) error {
			_, err := s.auditlog.ChainPage(ctx, base64.RawURLEncoding.EncodeToString([]byte(cursor)), page)

			return err
		}
	}

	for name, filter := range map[string]auditlog.Filter{
		"of all":         {},
		"of an instance": {InstanceID: "i10"},
		"of no instance": {InstanceID: "none"},
		"of a user":      {OrderedBy: "user-7"},
		"of no user":     {OrderedBy: "none"},
		"of an action":   {Action: "provision"},
		"of no action":   {Action: "none"},
		"of an hour":     {Since: filledAt.AddDate(0, -6, 0), Until: filledAt.AddDate(0, -6, 0).Add(time.Hour)},
		"after a cursor": {Before: filledAt.AddDate(0, -6, 0), BeforeID: "p50000"},
	} {
		filter.Limit = page
		calls["auditlog.List "+name] = func(ctx context.Context) error {
			_, err := s.auditlog.List(ctx, filter)

			return err
		}
	}

	return calls
}
