package instances

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

// migrations contains the migrations of the tables. The subfolders contain separate migrations for each database, which create the
// index on names.
//
//go:embed migrations
var migrations embed.FS

// Store reads and writes instances, and encrypts their requests. Its methods may be called from any goroutine.
type Store struct {
	db   *storage.DB
	keys *secret.Keyring
}

// Open migrates the tables and returns the store.
func Open(ctx context.Context, db *storage.DB, keys *secret.Keyring) (*Store, error) {
	if err := db.Migrate(ctx, "broker", migrations, "migrations"); err != nil {
		return nil, err
	}

	if err := db.Migrate(ctx, "instance_names", migrations, "migrations/"+db.Driver()); err != nil {
		return nil, err
	}

	return &Store{db: db, keys: keys}, nil
}

// row is a row of the instances table. It redefines those fields of Instance that the table stores with a different type.
type row struct {
	environment.Instance

	Request    string       `db:"request"`
	SharedWith string       `db:"shared_with"`
	Exclusive  *string      `db:"exclusive"`
	CreatedAt  storage.Time `db:"created_at"`
	UpdatedAt  storage.Time `db:"updated_at"`
	ExpiresAt  storage.Time `db:"expires_at"`
	ExpiredAt  storage.Time `db:"expired_at"`
}

// requestPlace returns the additional data with which the request of an instance is sealed, so that it cannot be decrypted as the
// request of another instance.
func requestPlace(id string) string { return "request of instance " + id }

// Sealed returns the column with the sealed requests, for key rotation.
func Sealed() storage.SealedColumn {
	return storage.SealedColumn{
		Table: "instances", Column: "request", Place: requestPlace,
		Bound: []string{"global_account_id", "subaccount_id", "subscription_account_id", "shoot_name", "provider", columnRuntime},
	}
}

// Insertion returns the statement that adds an instance. Callers combine it with the statement that adds the first operation. If
// another instance has the same ID, the same Shoot name or the same exclusive claim, the statement fails with an error for which
// storage.IsDuplicate is true.
func (s *Store) Insertion(instance environment.Instance) (storage.Statement, error) {
	request, err := s.sealed(instance)
	if err != nil {
		return storage.Statement{}, err
	}

	return storage.Statement{
		Text: `INSERT INTO instances (
			id, service_id, plan_id, plan_name, global_account_id, subaccount_id, platform_region, provider, region,
			name, shoot_name, runtime_id, dashboard_url, request, created_at, updated_at, exclusive, maintenance_version, expires_at,
			platform, shared_with, deletion_protection
		) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		Args: []any{
			instance.ID, instance.ServiceID, instance.PlanID, instance.PlanName, instance.GlobalAccountID, instance.SubAccountID,
			instance.PlatformRegion, instance.Provider, instance.Region, instance.Name, instance.ShootName, instance.RuntimeID,
			instance.DashboardURL, request, storage.At(instance.CreatedAt), storage.At(instance.UpdatedAt),
			nullable(instance.Exclusive), instance.MaintenanceVersion, storage.At(instance.ExpiresAt),
			instance.Platform, strings.Join(instance.SharedWith, " "), instance.DeletionProtection,
		},
	}, nil
}

// sealedRequest is the content of the envelope with a request. It repeats the values of the columns that determine who may use the
// instance and which tenant the cluster belongs to. The service thus detects changes to these columns that were made outside of
// it. Older releases seal and read only the request.
type sealedRequest struct {
	environment.Request

	// Platform is empty in requests that an earlier release sealed.
	Platform   string   `json:"platform,omitempty"`
	SharedWith []string `json:"shared_with,omitempty"`
	// Columns contains the values of the columns that determine which tenant the cluster belongs to, see storage.Bound.
	Columns storage.Bound `json:"columns,omitempty"`
}

// check returns an error if a column of the row differs from its sealed value.
func (r sealedRequest) check(row row) error {
	if r.Platform != "" && (r.Platform != row.Platform || !slices.Equal(r.SharedWith, strings.Fields(row.SharedWith))) {
		return errors.New("the platforms differ from those in the sealed request: the row was changed outside of the broker")
	}

	present := boundColumns(row.Instance)
	present[columnRuntime] = row.RuntimeID // check the column even if somebody has emptied it

	return r.Columns.Check(present)
}

// columnRuntime is the column with the ID of the runtime.
const columnRuntime = "runtime_id"

// boundColumns returns the values of the columns that determine which tenant the cluster belongs to. An empty runtime ID is not
// included, because an older replica may set it later without sealing it.
func boundColumns(instance environment.Instance) storage.Bound {
	bound := storage.Bound{
		"global_account_id": instance.GlobalAccountID, "subaccount_id": instance.SubAccountID,
		"subscription_account_id": instance.SubscriptionAccountID, "shoot_name": instance.ShootName, "provider": instance.Provider,
	}

	if instance.RuntimeID != "" {
		bound[columnRuntime] = instance.RuntimeID
	}

	return bound
}

// sealed returns an envelope with the instance's request and the values of its bound columns.
func (s *Store) sealed(instance environment.Instance) (string, error) {
	request, err := json.Marshal(sealedRequest{instance.Request, instance.Platform, instance.SharedWith, boundColumns(instance)})
	if err != nil {
		return "", fmt.Errorf("encoding the request of instance %s: %w", instance.ID, err)
	}

	return s.keys.Seal(request, requestPlace(instance.ID)), nil
}

// Exists reports whether there is an instance with the given ID.
func (s *Store) Exists(ctx context.Context, tx storage.Tx, id string) (bool, error) {
	found, err := storage.Select[int](ctx, tx, `SELECT 1 FROM instances WHERE id = ?`, id)

	return len(found) > 0, failure.While(err, "finding instance %s", id)
}

// Among returns the given IDs that belong to existing instances.
func (s *Store) Among(ctx context.Context, tx storage.Tx, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}

	found, err := storage.Select[string](ctx, tx, `SELECT id FROM instances WHERE id IN (?)`, ids)

	return found, failure.While(err, "finding instances")
}

// GetWithNewest is like Get, but also returns the ID of the instance's newest operation of one of the given kinds, or "" if there
// is no such operation. Both results come from one statement, so the operation cannot belong to a later instance with the same
// ID.
func (s *Store) GetWithNewest(ctx context.Context, tx storage.Tx, id string, kinds ...string) (environment.Instance, string, error) {
	found, err := storage.Get[struct {
		row

		Newest string `db:"newest"`
	}](ctx, tx, `SELECT `+columns+`, request, COALESCE((SELECT operations.id FROM operations
			WHERE operations.instance_id = instances.id AND operations.kind IN (?) ORDER BY operations.position DESC LIMIT 1), '') AS newest
		FROM instances WHERE instances.id = ?`, kinds, id)
	if err != nil {
		return environment.Instance{}, "", fmt.Errorf("reading instance %s: %w", id, err)
	}

	instance, err := s.instance(found.row)

	return instance, found.Newest, err
}

// Get returns an instance, or storage.ErrNotFound.
func (s *Store) Get(ctx context.Context, tx storage.Tx, id string) (environment.Instance, error) {
	row, err := storage.Get[row](ctx, tx, `SELECT `+columns+`, request FROM instances WHERE id = ?`, id)
	if err != nil {
		return environment.Instance{}, fmt.Errorf("reading instance %s: %w", id, err)
	}

	return s.instance(row)
}

// Claimed describes an exclusive claim, which only one instance can have. For example, a plan may allow only one instance per
// account.
type Claimed struct {
	// Exclusive is the claim, as stored in the row of the instance that has it.
	Exclusive string
	// GlobalAccountID and PlanID identify the instances that have the claim without storing it, because they were created before the
	// plan became exclusive.
	GlobalAccountID, PlanID string
	// Except is the ID of the instance that wants the claim.
	Except string
}

// Holder returns the ID of an instance other than Except that has the claim. If there is none, it returns storage.ErrNotFound.
func (s *Store) Holder(ctx context.Context, tx storage.Tx, claimed Claimed) (string, error) {
	id, err := storage.Get[string](ctx, tx, `SELECT id FROM instances
		WHERE id <> ? AND (exclusive = ? OR global_account_id = ? AND plan_id = ?) LIMIT 1`,
		claimed.Except, claimed.Exclusive, claimed.GlobalAccountID, claimed.PlanID)
	if err != nil {
		return "", fmt.Errorf("finding the instance that holds the claim %s: %w", claimed.Exclusive, err)
	}

	return id, nil
}

// nullable returns nil for an empty string. A unique index permits any number of NULLs, but only one empty string.
func nullable(text string) *string {
	if text == "" {
		return nil
	}

	return &text
}

// Touch sets the time of the instance's last change. This write locks the instance until the caller's transaction ends. Touch
// reports false if the instance does not exist.
func (s *Store) Touch(ctx context.Context, tx storage.Tx, id string, now time.Time) (bool, error) {
	touched, err := storage.Exec(ctx, tx, `UPDATE instances SET updated_at = ? WHERE id = ?`, storage.At(now), id)

	return touched == 1, failure.While(err, "touching instance %s", id)
}

// Lock locks the instance until the caller's transaction ends. It reports false if the instance does not exist.
func (s *Store) Lock(ctx context.Context, tx storage.Tx, id string) (bool, error) {
	found, err := storage.Select[int](ctx, tx, `SELECT 1 FROM instances WHERE id = ?`+s.db.ForUpdate(), id)

	return len(found) == 1, failure.While(err, "locking instance %s", id)
}

// Update writes the mutable fields of an instance in the caller's transaction, except its platforms (see SetPlatforms), its
// dashboard (see SetDashboardURL) and the time of its last change (see Touch). The caller must have locked the instance before
// reading it: otherwise, Update may overwrite concurrent changes. Update changes nothing if the ID now belongs to another
// instance.
func (s *Store) Update(ctx context.Context, tx storage.Tx, instance environment.Instance) error {
	request, err := s.sealed(instance)
	if err != nil {
		return err
	}

	_, err = storage.Exec(ctx, tx, `UPDATE instances SET plan_id = ?, plan_name = ?, global_account_id = ?, subscription_account_id = ?,
			exclusive = ?, maintenance_version = ?, runtime_id = ?, suspended = ?, expires_at = ?, expired_at = ?, deletion_protection = ?, request = ?
		WHERE id = ? AND shoot_name = ?`,
		instance.PlanID, instance.PlanName, instance.GlobalAccountID, instance.SubscriptionAccountID, nullable(instance.Exclusive),
		instance.MaintenanceVersion, instance.RuntimeID, instance.Suspended, storage.At(instance.ExpiresAt), storage.At(instance.ExpiredAt),
		instance.DeletionProtection, request, instance.ID, instance.ShootName)

	return failure.While(err, "updating instance %s", instance.ID)
}

// WithRuntime returns the IDs of at most limit instances that have a runtime. The IDs are sorted and greater than after.
func (s *Store) WithRuntime(ctx context.Context, after string, limit int) ([]string, error) {
	ids, err := storage.Select[string](ctx, s.db.Reader(),
		`SELECT id FROM instances WHERE id > ? AND runtime_id <> '' ORDER BY id `+storage.Page(limit, 0), after)

	return ids, failure.While(err, "listing instances with a runtime")
}

// Expiring is an instance whose lifetime has ended.
type Expiring struct {
	ID       string `db:"id"`
	PlanName string `db:"plan_name"`
	// Expired reports whether the instance has been marked as expired.
	Expired bool `db:"expired"`
}

// Expiring returns at most limit instances that expire by the given time and have not been suspended or marked as expired yet. They are
// sorted by ID, and their IDs are greater than after.
func (s *Store) Expiring(ctx context.Context, by time.Time, after string, limit int) ([]Expiring, error) {
	found, err := storage.Select[Expiring](ctx, s.db.Reader(), `SELECT id, plan_name, expired_at IS NOT NULL AS expired FROM instances
		WHERE expires_at IS NOT NULL AND expires_at <= ? AND (NOT suspended OR expired_at IS NULL) AND id > ? ORDER BY id `+storage.Page(limit, 0),
		storage.At(by), after)

	return found, failure.While(err, "finding expiring instances")
}

// ErrUnreadable reports that the row of an instance exists but cannot be used: no configured key decrypts it, or somebody changed
// it outside of the broker. Reading the row again does not help.
var ErrUnreadable = errors.New("the row cannot be read")

// instance returns the instance with its decrypted request, or ErrUnreadable.
func (s *Store) instance(row row) (environment.Instance, error) {
	request, err := s.request(row)
	if err != nil {
		return environment.Instance{}, fmt.Errorf("reading instance %s: %w: %w", row.ID, ErrUnreadable, err)
	}

	instance := row.instance()
	instance.Request = request.Request

	return instance, nil
}

// request decrypts the request of an instance and compares it with the columns of the row.
func (s *Store) request(row row) (request sealedRequest, err error) {
	plain, err := s.keys.Open(row.Request, requestPlace(row.ID))
	if err != nil {
		return request, err
	}

	if err := json.Unmarshal(plain, &request); err != nil {
		return request, fmt.Errorf("decoding the request: %w", err)
	}

	return request, request.check(row)
}

// namesIn returns the names that a column contains, or nil if it is empty.
func namesIn(column string) []string {
	if column == "" {
		return nil
	}

	return strings.Fields(column)
}

// instance converts the row to an Instance without the sealed request.
func (row row) instance() environment.Instance {
	instance := row.Instance
	instance.SharedWith = namesIn(row.SharedWith)
	instance.CreatedAt, instance.UpdatedAt = row.CreatedAt.Time, row.UpdatedAt.Time
	instance.ExpiresAt, instance.ExpiredAt = row.ExpiresAt.Time, row.ExpiredAt.Time

	if row.Exclusive != nil {
		instance.Exclusive = *row.Exclusive
	}

	return instance
}
