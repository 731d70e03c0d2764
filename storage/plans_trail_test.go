package storage_test

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// trailCalls are the audit trail, with a value that many rows have and one that none has.
func (s stores) trailCalls() map[string]call {
	calls := map[string]call{
		"trail.Insert": func(ctx context.Context) error {
			return s.trail.Insert(ctx, s.db.Writer(), auditlog.Entry{ID: "new", Action: auditlog.ActionAccess, At: filledAt})
		},
		"trail.Remove": func(ctx context.Context) error {
			_, err := s.trail.Remove(ctx, filledAt.AddDate(-1, 0, 0), page)

			return err
		},
	}

	for name, filter := range map[string]auditlog.Filter{
		"of all":          {},
		"of an instance":  {InstanceID: "i10"},
		"of no instance":  {InstanceID: "none"},
		"of a user":       {OrderedBy: "user-7"},
		"of no user":      {OrderedBy: "none"},
		"of an action":    {Action: "provision"},
		"of no action":    {Action: "none"},
		"of an hour":      {Since: filledAt.AddDate(0, -6, 0), Until: filledAt.AddDate(0, -6, 0).Add(time.Hour)},
		"behind a cursor": {Before: filledAt.AddDate(0, -6, 0), BeforeID: "p50000"},
	} {
		filter.Limit = page
		calls["trail.List "+name] = func(ctx context.Context) error {
			_, err := s.trail.List(ctx, filter)

			return err
		}
	}

	return calls
}
