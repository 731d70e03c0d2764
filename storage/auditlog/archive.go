package auditlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// archiveLength is the maximum number of records in an archive file.
	archiveLength = 5000
	folderMode    = 0o700
)

// ErrBroken reports that a segment of the chain was not archived because its verification failed.
var ErrBroken = errors.New("the audit log was changed in the database; nothing is archived or removed, see docs/operator/audit.md")

// Archive writes segments of the chain to files before retention removes the entries and operations in these segments. Each file
// continues the chain where the previous file ends.
type Archive struct {
	// Dir is the folder for the files. It is created if needed.
	Dir string
	// Service is the name of the service. The names and headers of the files contain it.
	Service string
	// Chainer determines which replica archives: the one that adds records to the chain.
	Chainer *Chainer
}

// ArchiveTo makes Remove and RemoveOperations archive rows before they remove them. Call it before the background work starts.
func (s *Store) ArchiveTo(archive Archive) { s.archive = &archive }

// archiveDue archives the chain up to the last record whose row the query selects. The query must return row IDs of the source,
// and take the current time as its argument. archiveDue returns the number of the last archived record. The rows up to this record
// may be removed.
func (s *Store) archiveDue(ctx context.Context, source, query string, now time.Time) (int64, error) {
	due, err := storage.Get[int64](ctx, s.db.Reader(), `SELECT COALESCE(MAX(number), 0) FROM audit_chain
		WHERE source = '`+source+`' AND id IN (`+query+`)`, storage.At(now))
	if err != nil {
		return 0, failure.While(err, "finding rows of the audit log to archive")
	}

	for {
		last, err := s.archived(ctx)
		if err != nil || last.Number >= due {
			return last.Number, err
		}

		if err := s.archiveSegment(ctx, last, min(due, last.Number+archiveLength), now); err != nil {
			return last.Number, fmt.Errorf("archiving the audit log: %w", err)
		}
	}
}

// archived returns the last archived record.
func (s *Store) archived(ctx context.Context) (chain.Head, error) {
	last, err := storage.Get[chainHead](ctx, s.db.Reader(), `SELECT archived AS number,
			COALESCE((SELECT hash FROM audit_chain WHERE audit_chain.number = audit_chain_head.archived), '') AS hash
		FROM audit_chain_head WHERE id = 1`)

	return chain.Head{Number: last.Number, Hash: last.Hash}, failure.While(err, "reading the last archived record")
}

// unfinished is the end of the names of files that replicas are writing.
const unfinished = ".unfinished"

// archiveSegment writes a segment of the chain to a file, verifies it, and then stores the number of its last record as archived.
// after is the record before the segment, and to is the number of the segment's last record. archiveSegment replaces a file of the
// same name, which a crash may have left behind.
func (s *Store) archiveSegment(ctx context.Context, after chain.Head, to int64, now time.Time) (err error) {
	if err := os.MkdirAll(s.archive.Dir, folderMode); err != nil {
		return err
	}

	name := fmt.Sprintf("%s-%012d.jsonl", s.archive.Service, after.Number+1)

	// Another replica may be writing the same segment, so each replica writes a file of its own.
	file, err := os.CreateTemp(s.archive.Dir, name+".*"+unfinished) // the mode is 0600: the files contain names and IP addresses of users
	if err != nil {
		return err
	}

	defer func() {
		if err != nil {
			err = errors.Join(err, removeFile(file.Name()))
		}
	}()

	err = errors.Join(s.writeSegment(ctx, file, after, to, now), file.Sync(), file.Close())
	if err != nil {
		return err
	}

	return s.finishSegment(ctx, file.Name(), name, after, to)
}

// finishSegment gives the file of a segment its final name, and stores the number of the segment's last record as archived. The
// transaction locks the head of the chain first. A replica that was paused thus cannot replace a file whose segment another replica
// has archived in the meantime.
func (s *Store) finishSegment(ctx context.Context, path, name string, after chain.Head, to int64) error {
	return s.db.InTx(ctx, func(tx storage.Tx) error {
		changed, err := storage.Exec(ctx, tx, `UPDATE audit_chain_head SET archived = ? WHERE id = 1 AND archived = ?`, to, after.Number)
		if err == nil && changed == 0 {
			err = errLeaseLost
		}

		if err != nil {
			return err
		}

		if err := os.Rename(path, filepath.Join(s.archive.Dir, name)); err != nil {
			return err
		}

		return errors.Join(s.removeUnfinished(name), syncFolder(s.archive.Dir))
	})
}

// removeUnfinished removes the unfinished files of an archived segment, which crashes have left behind. A replica that is still
// writing such a file fails later, because the segment is archived.
func (s *Store) removeUnfinished(name string) error {
	entries, err := os.ReadDir(s.archive.Dir)

	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), name+".") && strings.HasSuffix(entry.Name(), unfinished) {
			err = errors.Join(err, removeFile(filepath.Join(s.archive.Dir, entry.Name())))
		}
	}

	return err
}

// removeFile removes a file, unless another replica has removed or renamed it.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return nil
}

// writeSegment writes the records of a segment to the given file, and verifies them. after and to are the same as in
// archiveSegment.
func (s *Store) writeSegment(ctx context.Context, file *os.File, after chain.Head, to int64, now time.Time) error {
	verifier := chain.NewVerifier(chain.Options{Now: now, After: after, Continues: true})

	writer, err := chain.NewArchiveWriter(file, s.archive.Service, now, after)
	if err != nil {
		return err
	}

	const page = 200

	for last := after.Number; last < to; {
		records, err := s.ChainRecords(ctx, last, int(min(page, to-last)))
		if err != nil {
			return err
		}

		if len(records) == 0 {
			break // the verification reports the missing records
		}

		for _, record := range records {
			verifier.Add(record)

			if err := writer.Record(record); err != nil {
				return err
			}
		}

		last = records[len(records)-1].Number
	}

	report := verifier.Finish(chain.Head{Number: to})
	if !report.Valid {
		problem := report.Problems[0]

		return fmt.Errorf("record %d, %s %s, %s: %s: %w", problem.Number, problem.Source, problem.ID, problem.Problem, problem.Detail, ErrBroken)
	}

	return writer.End(report.Head)
}

// syncFolder flushes a folder to disk, so that the renaming of a file in it survives a crash of the machine.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}

	return errors.Join(folder.Sync(), folder.Close())
}
