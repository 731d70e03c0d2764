package leftovers

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

//go:embed migrations/*.sql
var migrations embed.FS

// columns lists all columns of the table.
const columns = `leftovers.id AS leftover_id, leftovers.kind AS leftover_kind, leftovers.instance_id AS id, service_id, plan_id, plan_name,
	global_account_id, subaccount_id, subscription_account_id, platform, platform_region, provider, region, name, shoot_name, runtime_id,
	steps, leftovers.data_id AS data_id, newest_id, leftovers.created_at AS instance_created_at, deleted_at, retry_at`

// row is a row of leftovers.
type row struct {
	environment.Instance

	LeftoverID string       `db:"leftover_id"`
	Kind       string       `db:"leftover_kind"`
	Steps      string       `db:"steps"`
	DataID     string       `db:"data_id"`
	NewestID   string       `db:"newest_id"`
	Created    storage.Time `db:"instance_created_at"`
	DeletedAt  storage.Time `db:"deleted_at"`
	RetryAt    storage.Time `db:"retry_at"`
}

func (r row) leftover() environment.Leftover {
	instance := r.Instance
	instance.CreatedAt = r.Created.Time

	return environment.Leftover{
		ID: r.LeftoverID, Kind: r.Kind, Instance: instance, Steps: strings.Fields(r.Steps), DataID: r.DataID, NewestID: r.NewestID,
		DeletedAt: r.DeletedAt.Time, RetryAt: r.RetryAt.Time,
	}
}

// Store reads and writes leftovers. Its methods may be called from any goroutine.
type Store struct{ db *storage.DB }

// Open migrates the table and returns the store. The operations table must exist.
func Open(ctx context.Context, db *storage.DB) (*Store, error) {
	if err := db.Migrate(ctx, "leftovers", migrations, "migrations"); err != nil {
		return nil, err
	}

	return &Store{db: db}, nil
}

// Add adds a leftover, in the transaction that ends the deletion or suspension.
func (s *Store) Add(ctx context.Context, tx storage.Tx, leftover environment.Leftover) error {
	instance := leftover.Instance

	_, err := storage.Exec(ctx, tx, `INSERT INTO leftovers (id, kind, instance_id, service_id, plan_id, plan_name, global_account_id,
			subaccount_id, subscription_account_id, platform, platform_region, provider, region, name, shoot_name, runtime_id,
			steps, data_id, newest_id, created_at, deleted_at, retry_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		leftover.ID, leftover.Kind, instance.ID, instance.ServiceID, instance.PlanID, instance.PlanName, instance.GlobalAccountID,
		instance.SubAccountID, instance.SubscriptionAccountID, instance.Platform, instance.PlatformRegion, instance.Provider,
		instance.Region, instance.Name, instance.ShootName, instance.RuntimeID, strings.Join(leftover.Steps, " "), leftover.DataID, leftover.NewestID,
		storage.At(instance.CreatedAt), storage.At(leftover.DeletedAt), storage.At(leftover.RetryAt))

	return failure.While(err, "adding the leftover %s", leftover.ID)
}

// Lock returns a leftover, or storage.ErrNotFound, and locks it until the caller's transaction ends.
func (s *Store) Lock(ctx context.Context, tx storage.Tx, id string) (environment.Leftover, error) {
	found, err := storage.Get[row](ctx, tx, `SELECT `+columns+` FROM leftovers WHERE id = ?`+s.db.ForUpdate(), id)
	if err != nil {
		return environment.Leftover{}, fmt.Errorf("reading the leftover %s: %w", id, err)
	}

	return found.leftover(), nil
}

// SetSteps replaces the list of steps that were not completed, and the ID of the operation whose data the next cleanup uses. It
// changes nothing if the leftover no longer exists.
func (s *Store) SetSteps(ctx context.Context, tx storage.Tx, id string, steps []string, dataID string) error {
	_, err := storage.Exec(ctx, tx, `UPDATE leftovers SET steps = ?, data_id = ? WHERE id = ?`, strings.Join(steps, " "), dataID, id)

	return failure.While(err, "updating the leftover %s", id)
}

// SetCleanup records the ID of a new cleanup, and the time at which the next one is due.
func (s *Store) SetCleanup(ctx context.Context, tx storage.Tx, id, cleanupID string, retryAt time.Time) error {
	_, err := storage.Exec(ctx, tx, `UPDATE leftovers SET newest_id = ?, retry_at = ? WHERE id = ?`, cleanupID, storage.At(retryAt), id)

	return failure.While(err, "recording a cleanup of the leftover %s", id)
}

// Remove removes a leftover. It returns no error if the leftover does not exist.
func (s *Store) Remove(ctx context.Context, tx storage.Tx, id string) error {
	_, err := storage.Exec(ctx, tx, `DELETE FROM leftovers WHERE id = ?`, id)

	return failure.While(err, "removing the leftover %s", id)
}

// Due returns the IDs of at most limit leftovers whose cleanup is due. The IDs are sorted and greater than after.
func (s *Store) Due(ctx context.Context, now time.Time, after string, limit int) ([]string, error) {
	ids, err := storage.Select[string](ctx, s.db.Reader(), `SELECT id FROM leftovers WHERE retry_at <= ? AND id > ? ORDER BY id `+
		storage.Page(limit, 0), storage.At(now), after)

	return ids, failure.While(err, "finding leftovers to clean up")
}

// OfInstances returns, for each of the given instances, the keys of its leftovers, see environment.LeftoverKey.
func (s *Store) OfInstances(ctx context.Context, tx storage.Tx, instanceIDs []string) (map[string][]string, error) {
	keys := map[string][]string{}
	if len(instanceIDs) == 0 {
		return keys, nil
	}

	rows, err := storage.Select[struct {
		ID         string `db:"id"`
		InstanceID string `db:"instance_id"`
	}](ctx, tx, `SELECT id, instance_id FROM leftovers WHERE instance_id IN (?)`, instanceIDs)
	for _, row := range rows {
		keys[row.InstanceID] = append(keys[row.InstanceID], environment.LeftoverKey(row.InstanceID, row.ID))
	}

	return keys, failure.While(err, "finding leftovers of instances")
}

// OfShoots returns the leftovers of instances with the given Shoot names. A Shoot name belongs to only one instance, so these leftovers
// include none of a deleted instance with the same instance ID. Pass at most the names of one page, because databases limit the
// number of parameters.
func (s *Store) OfShoots(ctx context.Context, tx storage.Tx, names []string) ([]environment.Leftover, error) {
	if len(names) == 0 {
		return nil, nil
	}

	rows, err := storage.Select[row](ctx, tx, `SELECT `+columns+` FROM leftovers WHERE shoot_name IN (?) ORDER BY leftovers.id`, names)

	return leftovers(rows), failure.While(err, "finding leftovers of Shoots")
}

// OfAccount returns at most limit leftovers of instances that the account owned or ordered.
func (s *Store) OfAccount(ctx context.Context, tx storage.Tx, account string, limit int) ([]environment.Leftover, error) {
	rows, err := storage.Select[row](ctx, tx, `SELECT `+columns+` FROM leftovers WHERE leftovers.id IN (
		SELECT id FROM leftovers WHERE global_account_id = ?
		UNION ALL
		SELECT id FROM leftovers WHERE subscription_account_id = ? AND subscription_account_id <> ''
	) ORDER BY leftovers.id `+storage.Page(limit, 0), account, account)

	return leftovers(rows), failure.While(err, "listing the leftovers of account %s", account)
}

func leftovers(rows []row) []environment.Leftover {
	found := make([]environment.Leftover, 0, len(rows))
	for _, row := range rows {
		found = append(found, row.leftover())
	}

	return found
}
