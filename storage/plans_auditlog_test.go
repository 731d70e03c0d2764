package storage_test

import (
	"context"
	"time"

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
