package auditlog_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// archived verifies the files in an archive folder, and returns their names and the report.
func archived(t *testing.T, dir string) ([]string, chain.Report) {
	t.Helper()

	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}

	verifier, names := chain.NewFileVerifier(chain.Options{}), []string{}

	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()

		if err := verifier.Add(file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}

		names = append(names, filepath.Base(path))
	}

	return names, verifier.Finish()
}

func TestEntriesAreArchivedBeforeTheyAreRemoved(t *testing.T) {
	const keep = 24 * time.Hour

	onEach(t, keep, func(b fixture) {
		clock, dir := clocktesting.NewFakeClock(began.Add(30*time.Minute)), filepath.Join(b.TempDir(), "archive")
		chainer := b.chainer(clock)
		b.entries.ArchiveTo(auditlog.Archive{Dir: dir, Service: "broker", Chainer: chainer})

		remove := func(after time.Duration, want int) {
			b.Helper()

			if removed, err := b.entries.Remove(b.Context(), began.Add(keep+after), 10); removed != want || err != nil {
				b.Fatalf("%s after the retention period of the first entry: want %d removed entries, got %d, %v", after, want, removed, err)
			}
		}

		alice := auditlog.Actor{User: "alice"}

		b.add(1, auditlog.Entry{Action: auditlog.ActionAccess, By: alice})
		b.accept(2, process.New{Kind: "provision", InstanceID: "i1"}, auditlog.Entry{By: alice})
		b.add(3, auditlog.Entry{Action: auditlog.ActionAccess, By: alice})
		b.add(4, auditlog.Entry{Action: auditlog.ActionAccess, By: alice})
		remove(time.Hour, 0) // this replica has no lease, and the entries have no record

		b.pass(chainer)
		remove(2*time.Minute, 1)
		remove(3*time.Minute+time.Second, 1)
		remove(3*time.Minute+time.Second, 0)

		names, report := archived(b.T, dir)
		if diff := cmp.Diff([]string{"broker-000000000001.jsonl", "broker-000000000002.jsonl"}, names); diff != "" {
			b.Errorf("files: -want +got\n%s", diff)
		}

		if !report.Valid || report.Records != 3 || report.Removed != 0 {
			b.Errorf("want an archive with the rows of 3 records, got %+v", report)
		}

		// The chain in the database continues after the last archived hash.
		live := b.verify(began.Add(keep+time.Hour/2), report.Head.Hash)
		if !live.Valid || live.Removed != 2 || live.Since == nil || *live.Since != 1 {
			b.Errorf("want a valid chain with one record since the archive and 2 removed rows, got %+v", live)
		}
	})
}

// TestSmallBatchesShareAnArchive removes entries one by one. The first removal archives the records of all due entries.
func TestSmallBatchesShareAnArchive(t *testing.T) {
	const keep = 24 * time.Hour

	onEach(t, keep, func(b fixture) {
		clock, dir := clocktesting.NewFakeClock(began.Add(30*time.Minute)), filepath.Join(b.TempDir(), "archive")
		chainer := b.chainer(clock)
		b.entries.ArchiveTo(auditlog.Archive{Dir: dir, Service: "broker", Chainer: chainer})

		const count = 3

		for minute := range count {
			b.add(1+minute, auditlog.Entry{Action: auditlog.ActionAccess, By: auditlog.Actor{User: "alice"}})
		}

		b.pass(chainer)

		for range count {
			if removed, err := b.entries.Remove(b.Context(), began.Add(keep+time.Hour), 1); removed != 1 || err != nil {
				b.Fatalf("want 1 removed entry, got %d, %v", removed, err)
			}
		}

		names, report := archived(b.T, dir)
		if len(names) != 1 || !report.Valid || report.Records != count {
			b.Errorf("want one archive with %d records, got %q and %+v", count, names, report)
		}
	})
}

// TestBrokenSegmentIsNotArchived changes an entry in the database. The entry must stay there as evidence.
func TestBrokenSegmentIsNotArchived(t *testing.T) {
	onEach(t, 24*time.Hour, func(b fixture) {
		clock, dir := clocktesting.NewFakeClock(began.Add(30*time.Minute)), b.TempDir()
		chainer := b.chainer(clock)
		b.entries.ArchiveTo(auditlog.Archive{Dir: dir, Service: "broker", Chainer: chainer})

		b.add(1, auditlog.Entry{Action: auditlog.ActionAccess, By: auditlog.Actor{User: "alice"}})
		b.pass(chainer)
		b.dropTriggers()
		b.exec(`UPDATE audit SET ordered_by = 'mallory'`)

		removed, err := b.entries.Remove(b.Context(), began.Add(48*time.Hour), 10)
		if removed != 0 || !errors.Is(err, auditlog.ErrBroken) || !strings.Contains(err.Error(), "e01") {
			b.Errorf("want no removed entry and an error that names it, got %d, %v", removed, err)
		}

		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			b.Errorf("want an empty folder, got %v, %v", left, err)
		}
	})
}

// TestErasedRowInTheFirstSegment archives an erased entry before the entry of the erasure, which is in a later segment.
func TestErasedRowInTheFirstSegment(t *testing.T) {
	onEach(t, 24*time.Hour, func(b fixture) {
		clock, dir := clocktesting.NewFakeClock(began.Add(30*time.Minute)), b.TempDir()
		chainer := b.chainer(clock)
		b.entries.ArchiveTo(auditlog.Archive{Dir: dir, Service: "broker", Chainer: chainer})

		erased := b.add(1, auditlog.Entry{Action: auditlog.ActionAccess, By: auditlog.Actor{User: "alice"}})
		erasure := b.erasure(2, "a1")

		if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
			return b.entries.Erase(b.Context(), tx, []string{erased.ID}, erasure.ID)
		}); err != nil {
			b.Fatal(err)
		}

		b.pass(chainer)

		if removed, err := b.entries.Remove(b.Context(), began.Add(48*time.Hour), 10); removed != 1 || err != nil {
			b.Errorf("want one removed entry, got %d, %v", removed, err)
		}

		if _, report := archived(b.T, dir); !report.Valid || report.Erased != 1 {
			b.Errorf("without the file of the erasure, want a valid archive with one erased row, got %+v", report)
		}
	})
}

// TestArchiveSurvivesACrash archives again after a crash that left a file behind but did not record its segment as archived.
func TestArchiveSurvivesACrash(t *testing.T) {
	onEach(t, 24*time.Hour, func(b fixture) {
		clock, dir := clocktesting.NewFakeClock(began.Add(30*time.Minute)), b.TempDir()
		chainer := b.chainer(clock)
		b.entries.ArchiveTo(auditlog.Archive{Dir: dir, Service: "broker", Chainer: chainer})

		b.add(1, auditlog.Entry{Action: auditlog.ActionAccess})
		b.pass(chainer)

		path := filepath.Join(dir, "broker-000000000001.jsonl")
		for _, left := range []string{path, path + ".unfinished"} {
			if err := os.WriteFile(left, []byte("half a line"), 0o600); err != nil {
				b.Fatal(err)
			}
		}

		if removed, err := b.entries.Remove(b.Context(), began.Add(48*time.Hour), 10); removed != 1 || err != nil {
			b.Fatalf("want one removed entry, got %d, %v", removed, err)
		}

		if names, report := archived(b.T, dir); len(names) != 1 || !report.Valid || report.Records != 1 {
			b.Errorf("want one valid file, got %v, %+v", names, report)
		}
	})
}

// TestReplicasArchiveAtTheSameTime archives with two replicas, of which the first was paused and does not know yet that it has lost
// the lease. The second one archives a longer segment. Both have written their segments before one of them is recorded as archived.
func TestReplicasArchiveAtTheSameTime(t *testing.T) {
	const keep = 24 * time.Hour

	onEach(t, keep, func(b fixture) {
		clock, dir := clocktesting.NewFakeClock(began.Add(30*time.Minute)), b.TempDir()
		first, second := b, fixtureOn(b.T, b.db, keep)

		for minute := range 3 {
			b.add(1+minute, auditlog.Entry{Action: auditlog.ActionAccess})
		}

		for _, replica := range []fixture{first, second} {
			chainer := replica.chainer(clock)
			replica.entries.ArchiveTo(auditlog.Archive{Dir: dir, Service: "broker", Chainer: chainer})
			replica.pass(chainer)
			clock.Step(time.Minute)
		}

		release := b.lockHead()
		ended := make(chan error)

		for written, replica := range []fixture{first, second} {
			go func() {
				_, err := replica.entries.Remove(b.Context(), began.Add(keep+time.Duration(written+1)*time.Minute+time.Second), 10)
				ended <- err
			}()

			for writtenRecords(b.T, dir) <= written {
				runtime.Gosched()
			}
		}

		release()

		if one, other := <-ended, <-ended; one != nil && other != nil {
			b.Errorf("want one replica that archives, got %v and %v", one, other)
		}

		if _, err := second.entries.Remove(b.Context(), began.Add(keep+time.Hour), 10); err != nil {
			b.Error(err)
		}

		if names, report := archived(b.T, dir); len(names) != 2 || !report.Valid || report.Records != 3 || report.Removed != 0 {
			b.Errorf("want an archive with the rows of 3 records, got %v, %+v", names, report)
		}
	})
}

// lockHead locks the head of the chain until the returned function is called.
func (b fixture) lockHead() (release func()) {
	b.Helper()

	locked, unlock, ended := make(chan struct{}), make(chan struct{}), make(chan error)

	go func() {
		ended <- b.db.InTx(b.Context(), func(tx storage.Tx) error {
			_, err := storage.Select[int](b.Context(), tx, `SELECT id FROM audit_chain_head`+b.db.ForUpdate())

			close(locked)
			<-unlock

			return err
		})
	}()

	<-locked

	return func() {
		close(unlock)

		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
}

// writtenRecords returns the number of records in the files of a folder that were written completely.
func writtenRecords(t *testing.T, dir string) int {
	t.Helper()

	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}

	total := 0

	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}

		if strings.Contains(string(content), `{"end":`) {
			total += strings.Count(string(content), `{"record":`)
		}
	}

	return total
}
