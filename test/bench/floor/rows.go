package floor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // driver "postgres"
)

const (
	// connections and connectionAge are the pool settings of package storage, so that both programs have the same pool.
	connections   = 12
	connectionAge = 30 * time.Minute
)

const createTables = `
CREATE TABLE IF NOT EXISTS floor_instances (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, request TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS floor_operations (
	id TEXT PRIMARY KEY, instance_id TEXT NOT NULL, state TEXT NOT NULL, description TEXT NOT NULL, payload TEXT NOT NULL)`

// rows are the statements of the floor, each prepared once on every connection.
type rows struct {
	db                                               *sqlx.DB
	insertInstance, insertOperation, selectOperation *sqlx.Stmt
}

// openRows creates the tables unless they exist, and prepares the statements.
func openRows(ctx context.Context, dsn string) (rows, error) {
	db, err := sqlx.Open("postgres", dsn)
	if err != nil {
		return rows{}, fmt.Errorf("opening the database: %w", err)
	}

	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxLifetime(connectionAge)

	opened := rows{db: db}

	_, made := db.ExecContext(ctx, createTables)
	if made != nil {
		return rows{}, errors.Join(fmt.Errorf("creating the tables: %w", made), db.Close())
	}

	var errs [3]error

	opened.insertInstance, errs[0] = db.PreparexContext(ctx, `INSERT INTO floor_instances (id, tenant, request) VALUES ($1, $2, $3)`)
	opened.insertOperation, errs[1] = db.PreparexContext(ctx,
		`INSERT INTO floor_operations (id, instance_id, state, description, payload) VALUES ($1, $2, $3, $4, $5)`)
	opened.selectOperation, errs[2] = db.PreparexContext(ctx, `SELECT state, description FROM floor_operations WHERE id = $1`)

	if err := errors.Join(errs[:]...); err != nil {
		return rows{}, errors.Join(fmt.Errorf("preparing statements: %w", err), db.Close())
	}

	return opened, nil
}

// accept commits an instance and an operation in one transaction.
func (r rows) accept(ctx context.Context, instance, tenant, operation, request string) (err error) {
	tx, err := r.db.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}

	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()

	if _, err := tx.StmtxContext(ctx, r.insertInstance).ExecContext(ctx, instance, tenant, request); err != nil {
		return fmt.Errorf("inserting an instance: %w", err)
	}

	if _, err := tx.StmtxContext(ctx, r.insertOperation).ExecContext(ctx, operation, instance, "pending", "", request); err != nil {
		return fmt.Errorf("inserting an operation: %w", err)
	}

	return tx.Commit()
}

// operation is the part of an operation that last_operation returns.
type operation struct {
	State       string `db:"state"       json:"state"`
	Description string `db:"description" json:"description"`
}

func (r rows) operation(ctx context.Context, id string) (operation, error) {
	var found operation

	if err := r.selectOperation.GetContext(ctx, &found, id); err != nil {
		return operation{}, fmt.Errorf("reading an operation: %w", err)
	}

	return found, nil
}
