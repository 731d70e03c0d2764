package postgrestest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// StandBy has the server begin anew as one that follows another: it answers, and writes nothing, until Promote.
func (s *Server) StandBy() error {
	if err := s.Stop(); err != nil {
		return err
	}

	if err := os.WriteFile(filepath.Join(s.folder, "data", "standby.signal"), nil, 0o600); err != nil {
		return fmt.Errorf("having PostgreSQL follow: %w", err)
	}

	if s.owner >= 0 {
		if err := os.Chown(filepath.Join(s.folder, "data", "standby.signal"), s.owner, -1); err != nil {
			return fmt.Errorf("handing a file to PostgreSQL's user: %w", err)
		}
	}

	return s.Start()
}

// Promote has a server take over that stood by, and waits until it writes.
func (s *Server) Promote(ctx context.Context) error {
	if err := administer(ctx, s.dsn, `SELECT pg_promote()`); err != nil {
		return fmt.Errorf("promoting PostgreSQL: %w", err)
	}

	return nil
}
