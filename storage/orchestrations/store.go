package orchestrations

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

//go:embed migrations/*.sql
var migrations embed.FS

// ErrLeaseLost reports that a write failed because its conductor has lost its lease.
var ErrLeaseLost = errors.New("the operation has lost its lease")

// Store reads and writes orchestrations, their targets, and the maintenance windows of Shoots. Its methods may be called from any goroutine.
type Store struct{ db *storage.DB }

// Operations is the store that contains the upgrades and the conductors. operations.Store implements it.
type Operations interface {
	AtEnd(statements func(process.Record) []storage.Statement)
}

// Open migrates the tables and returns the store. It also registers statements with the store of the operations, so that the end
// of an upgrade makes the conductor of its orchestration due.
func Open(ctx context.Context, db *storage.DB, operations Operations) (*Store, error) {
	if err := db.Migrate(ctx, "orchestrations", migrations, "migrations"); err != nil {
		return nil, err
	}

	operations.AtEnd(wakeConductor)

	return &Store{db: db}, nil
}

// wakeConductor returns the statement that, at the end of an upgrade, makes the conductor of the upgrade's orchestration due. For
// operations of other kinds, it returns nil.
func wakeConductor(by process.Record) []storage.Statement {
	if !slices.Contains(environment.UpgradeKinds(), by.Kind) {
		return nil
	}

	return []storage.Statement{{
		Text: `UPDATE operations SET next_run_at = ?, woken = TRUE WHERE state = 'in progress' AND kind = ? AND instance_id IN (
			SELECT ? || orchestration_id FROM orchestration_targets WHERE operation_id = ?)`,
		Args: []any{storage.At(by.FinishedAt), environment.KindOrchestrate, environment.OrchestrationKey(""), by.ID},
	}}
}

// row is a row of orchestrations.
type row struct {
	ID          string       `db:"id"`
	Kind        string       `db:"kind"`
	State       string       `db:"state"`
	Description string       `db:"description"`
	Parameters  string       `db:"parameters"`
	OrderedBy   string       `db:"ordered_by"`
	CreatedAt   storage.Time `db:"created_at"`
	UpdatedAt   storage.Time `db:"updated_at"`
	AppliedBy   string       `db:"applied_by"`
	AppliedAt   storage.Time `db:"applied_at"`
	Wave        int          `db:"wave"`
	SoakUntil   storage.Time `db:"soak_until"`
	Undoes      string       `db:"undoes"`
}

// inserted lists the columns that Insert sets. columns lists the columns of row.
const (
	inserted = `id, kind, state, description, parameters, ordered_by, created_at, updated_at, undoes`
	columns  = inserted + `, applied_by, applied_at, wave, soak_until`
)

func (r row) orchestration() (environment.Orchestration, error) {
	orchestration := environment.Orchestration{
		ID: r.ID, Kind: r.Kind, State: environment.OrchestrationState(r.State), Description: r.Description, OrderedBy: r.OrderedBy,
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time, AppliedBy: r.AppliedBy, AppliedAt: r.AppliedAt.Time,
		Wave: r.Wave, SoakUntil: r.SoakUntil.Time, Undoes: r.Undoes,
	}
	err := json.Unmarshal([]byte(r.Parameters), &orchestration.Parameters)

	return orchestration, failure.While(err, "reading the parameters of orchestration %s", r.ID)
}

// Insert adds an orchestration, in the transaction that accepts its conductor. It can also add a plan, which has no conductor.
func (s *Store) Insert(ctx context.Context, tx storage.Tx, orchestration environment.Orchestration) error {
	parameters, err := json.Marshal(orchestration.Parameters)
	if err != nil {
		return fmt.Errorf("encoding the parameters of an orchestration: %w", err)
	}

	_, err = storage.Exec(ctx, tx, `INSERT INTO orchestrations (`+inserted+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		orchestration.ID, orchestration.Kind, string(orchestration.State), orchestration.Description, string(parameters),
		orchestration.OrderedBy, storage.At(orchestration.CreatedAt), storage.At(orchestration.UpdatedAt), orchestration.Undoes)

	return failure.While(err, "adding orchestration %s", orchestration.ID)
}

// Get returns an orchestration, or storage.ErrNotFound.
func (s *Store) Get(ctx context.Context, tx storage.Tx, id string) (environment.Orchestration, error) {
	return s.read(ctx, tx, id, "")
}

// Lock is like Get, but also locks the orchestration until the transaction ends.
func (s *Store) Lock(ctx context.Context, tx storage.Tx, id string) (environment.Orchestration, error) {
	return s.read(ctx, tx, id, s.db.ForUpdate())
}

func (s *Store) read(ctx context.Context, tx storage.Tx, id, lock string) (environment.Orchestration, error) {
	found, err := storage.Get[row](ctx, tx, `SELECT `+columns+` FROM orchestrations WHERE id = ?`+lock, id)
	if err != nil {
		return environment.Orchestration{}, fmt.Errorf("reading orchestration %s: %w", id, err)
	}

	return found.orchestration()
}

// Conduct locks and returns the conductor's orchestration. If the conductor has lost its lease, Conduct returns ErrLeaseLost.
func (s *Store) Conduct(ctx context.Context, tx storage.Tx, conductor process.Record) (environment.Orchestration, error) {
	id, _ := environment.OrchestrationOf(conductor.InstanceID)

	orchestration, err := s.Lock(ctx, tx, id)
	if err != nil {
		return orchestration, err
	}

	held, err := storage.Select[int](ctx, tx, `SELECT 1 FROM operations WHERE id = ? AND fence = ? AND lease_owner = ?`+s.db.ForUpdate(),
		conductor.ID, conductor.Lease.Fence, conductor.Lease.Owner)
	if err == nil && len(held) == 0 {
		err = ErrLeaseLost
	}

	return orchestration, failure.While(err, "checking the lease of operation %s", conductor.ID)
}

// SetState changes the state and the description of an orchestration that the transaction has locked.
func (s *Store) SetState(ctx context.Context, tx storage.Tx, id string, state environment.OrchestrationState, description string, now time.Time) error {
	_, err := storage.Exec(ctx, tx, `UPDATE orchestrations SET state = ?, description = ?, updated_at = ?
		WHERE id = ? AND (state <> ? OR description <> ?)`, string(state), description, storage.At(now), id, string(state), description)

	return failure.While(err, "changing orchestration %s", id)
}

// WakeConductor makes the conductor due now. It reports false if the orchestration has no conductor that is pending or in progress.
func (s *Store) WakeConductor(ctx context.Context, tx storage.Tx, id string, now time.Time) (bool, error) {
	unfinished, err := storage.Exec(ctx, tx, `UPDATE operations SET next_run_at = ?, woken = TRUE
		WHERE instance_id = ? AND state IN ('pending', 'in progress')`, storage.At(now), environment.OrchestrationKey(id))

	return unfinished > 0, failure.While(err, "waking the conductor of orchestration %s", id)
}

// List returns a page of orchestrations, newest first, and the number of orchestrations on all pages. It lists only orchestrations
// in the given states, or in any state if states is empty.
func (s *Store) List(ctx context.Context, states []string, limit, offset int) ([]environment.Orchestration, int, error) {
	var conditions storage.Conditions

	conditions.Add(len(states) > 0, "state IN (?)", states)
	where, args := conditions.Where()

	rows, err := storage.Select[row](ctx, s.db.Reader(), `SELECT `+columns+` FROM orchestrations`+where+
		` ORDER BY created_at DESC, id DESC `+storage.Page(limit, offset), args...)
	if err != nil {
		return nil, 0, fmt.Errorf("listing orchestrations: %w", err)
	}

	listed := make([]environment.Orchestration, 0, len(rows))

	for _, row := range rows {
		orchestration, err := row.orchestration()
		if err != nil {
			return nil, 0, err
		}

		listed = append(listed, orchestration)
	}

	total, err := storage.Get[int](ctx, s.db.Reader(), `SELECT count(*) FROM orchestrations`+where, args...)

	return listed, total, failure.While(err, "counting orchestrations")
}
