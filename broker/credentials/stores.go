package credentials

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
)

// Database is the part of storage.DB that this package uses.
type Database interface {
	InTx(ctx context.Context, work func(tx storage.Tx) error) error
	Reader() storage.Tx
}

// Reports is the part of reports.Store that this package uses: it lets replicas take turns, and stores their progress.
type Reports interface {
	Claim(ctx context.Context, id string, now, next time.Time) (bool, error)
	Postpone(ctx context.Context, id string, next time.Time) error
	Save(ctx context.Context, id string, content any, at time.Time) error
	Get(ctx context.Context, id string, content any) (time.Time, error)
}

// Objects is the part of outsideobjects.Store that renewals use.
type Objects interface {
	DueCredentials(ctx context.Context, systems []string, now time.Time, limit int) ([]environment.OutsideObject, error)
	BeginRenewal(ctx context.Context, renewal outsideobjects.Renewal) (bool, error)
	Reserve(ctx context.Context, tx storage.Tx, object environment.OutsideObject, until time.Time) (bool, error)
	EndRenewal(ctx context.Context, tx storage.Tx, renewal outsideobjects.Renewal, result outsideobjects.Result) error
}
