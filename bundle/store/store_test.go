package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/environment-broker/environment-broker/bundle/archive"
)

// tree returns a tree with a file that does not compress.
func tree(seed uint64, size int) fs.FS {
	content := make([]byte, size)
	random := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = random.Read(content)

	return fstest.MapFS{"manifests/object.yaml": {Data: content}}
}

func newStore(t *testing.T, folder string) *Store {
	t.Helper()

	s, err := New(folder)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { s.Close() })

	return s
}

func mustPut(t *testing.T, s *Store, tree fs.FS) Digest {
	t.Helper()

	digest, err := s.Put(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}

	return digest
}

// content returns the file of a stored tree.
func content(t *testing.T, s *Store, digest Digest) []byte {
	t.Helper()

	opened, size, err := s.Open(digest)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()

	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()

	if err := archive.Extract(t.Context(), io.LimitReader(opened, size), root, archive.Limits{}); err != nil {
		t.Fatal(err)
	}

	found, err := root.ReadFile("manifests/object.yaml")
	if err != nil {
		t.Fatal(err)
	}

	return found
}

func wanted(t *testing.T, tree fs.FS) []byte {
	t.Helper()

	found, err := fs.ReadFile(tree, "manifests/object.yaml")
	if err != nil {
		t.Fatal(err)
	}

	return found
}

// files returns the paths of all files in the store.
func files(t *testing.T, folder string) []string {
	t.Helper()

	found, err := filepath.Glob(filepath.Join(folder, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}

	return found
}

// age makes all files so old that Sweep no longer keeps unused ones.
func age(t *testing.T, folder string) {
	t.Helper()

	old := time.Now().Add(-2 * grace)
	for _, file := range files(t, folder) {
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
	}
}

func never[T any](T) bool  { return false }
func always[T any](T) bool { return true }

// TestPut checks that the same content is stored once, under its digest.
func TestPut(t *testing.T) {
	folder := t.TempDir()
	s := newStore(t, folder)

	digest := mustPut(t, s, tree(1, 1000))
	if again := mustPut(t, newStore(t, folder), tree(1, 1000)); again != digest || len(files(t, folder)) != 1 {
		t.Errorf("the same content has the digests %s and %s, and the files %v", digest, again, files(t, folder))
	}

	if !bytes.Equal(content(t, s, digest), wanted(t, tree(1, 1000))) {
		t.Error("the content differs")
	}

	for _, absent := range []Digest{"", "sha256:", "sha256:../../etc/passwd", Digest(strings.ToUpper(string(digest))), "sha256:" + Digest(strings.Repeat("0", 64))} {
		if _, _, err := s.Open(absent); !errors.Is(err, fs.ErrNotExist) || s.Has(absent) {
			t.Errorf("%q: %v", absent, err)
		}
	}

	if _, err := s.Put(t.Context(), fstest.MapFS{"device": {Mode: fs.ModeDevice}}); err == nil {
		t.Error("a device is stored")
	} else if _, invalid := errors.AsType[*archive.InvalidError](err); !invalid || len(files(t, folder)) != 1 {
		t.Errorf("a device: %v, %v", err, files(t, folder))
	}

	canceled, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := s.Put(canceled, tree(2, 1000)); !errors.Is(err, context.Canceled) || len(files(t, folder)) != 1 {
		t.Errorf("canceled: %v, %v", err, files(t, folder))
	}
}

// TestDamagedArchive checks that a damaged archive is treated as absent, and that Put replaces it.
func TestDamagedArchive(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"torn":    func(path string) error { return os.Truncate(path, 500) },
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"flipped": func(path string) error { return flip(path, 700) },
		"longer":  func(path string) error { return os.Truncate(path, 5000) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			digest := mustPut(t, newStore(t, folder), tree(1, 1000))

			if err := damage(filepath.Join(folder, blobName(digest))); err != nil {
				t.Fatal(err)
			}

			s := newStore(t, folder) // as after a restart
			if _, _, err := s.Open(digest); !errors.Is(err, fs.ErrNotExist) || !strings.HasSuffix(err.Error(), ": its content is damaged") {
				t.Errorf("got %v", err)
			}

			if again := mustPut(t, s, tree(1, 1000)); again != digest || !bytes.Equal(content(t, s, digest), wanted(t, tree(1, 1000))) {
				t.Error("the archive was not replaced")
			}
		})
	}

	t.Run("while it is used", func(t *testing.T) {
		folder := t.TempDir()
		s := newStore(t, folder)
		digest := mustPut(t, s, tree(1, 1000))

		if !s.Has(digest) {
			t.Fatal("it is missing")
		}

		if err := os.Truncate(filepath.Join(folder, blobName(digest)), 500); err != nil {
			t.Fatal(err)
		}

		if s.Has(digest) {
			t.Error("a change after the first verification is not noticed")
		}
	})
}

// flip changes a byte of a file.
func flip(path string, at int) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}

	content[at] ^= 1

	return os.WriteFile(path, content, 0o600)
}

// TestUploads checks replacing, reading and removing uploads.
func TestUploads(t *testing.T) {
	folder := t.TempDir()
	s := newStore(t, folder)

	if _, _, err := s.OpenUpload("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the upload: %v", err)
	}

	for i, step := range []struct {
		content string
		changed bool
	}{{"one", true}, {"one", false}, {"two", true}} {
		if changed, err := s.PutUpload("a", strings.NewReader(step.content), 3); err != nil || changed != step.changed {
			t.Errorf("step %d: %v, %v", i, changed, err)
		}
	}

	if _, err := s.PutUpload("a", strings.NewReader("four"), 3); !errors.Is(err, ErrTooLarge) || len(files(t, folder)) != 1 {
		t.Errorf("a large upload: %v, %v", err, files(t, folder))
	}

	opened, size, err := s.OpenUpload("a")
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()

	if err := s.RemoveUpload("a"); err != nil {
		t.Fatal(err)
	}

	if read, err := io.ReadAll(opened); err != nil || string(read) != "two" || size != 3 {
		t.Errorf("an open upload must stay readable: %q, %d, %v", read, size, err)
	}

	if err := s.RemoveUpload("a"); err != nil {
		t.Errorf("removed again: %v", err)
	}

	for _, name := range []string{"", "..", "../sha256/x", "A", "a/b", strings.Repeat("a", 254)} {
		if _, err := s.PutUpload(name, strings.NewReader("x"), 3); !errors.Is(err, fs.ErrNotExist) || !strings.HasSuffix(err.Error(), "it must be a DNS subdomain") {
			t.Errorf("put %q: %v", name, err)
		}

		if _, _, err := s.OpenUpload(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open %q: %v", name, err)
		}
	}
}

// TestSweep checks that Sweep removes old, unused files only.
func TestSweep(t *testing.T) {
	folder := t.TempDir()
	s := newStore(t, folder)
	used, unused := mustPut(t, s, tree(1, 10)), mustPut(t, s, tree(2, 10))

	for _, bundle := range []string{"used.v1", "unused"} {
		if _, err := s.PutUpload(bundle, strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}

	sweep := func() int {
		t.Helper()

		removed, err := s.Sweep(t.Context(), func(d Digest) bool { return d == used }, func(b string) bool { return b == "used.v1" })
		if err != nil {
			t.Fatal(err)
		}

		return removed
	}

	if removed := sweep(); removed != 0 || !s.Has(unused) {
		t.Errorf("%d new files were removed", removed)
	}

	age(t, folder)

	young := mustPut(t, s, tree(3, 10))
	if removed := sweep(); removed != 2 || s.Has(unused) || !s.Has(used) || !s.Has(young) {
		t.Errorf("%d files were removed, left are %v", removed, files(t, folder))
	}

	age(t, folder)

	if again := mustPut(t, s, tree(3, 10)); sweep() != 0 || !s.Has(again) {
		t.Error("an archive that was stored again was removed")
	}
}

// TestTemporary checks that a temporary folder disappears with its process, and that no other process removes it before.
func TestTemporary(t *testing.T) {
	volume := t.TempDir()
	first, second := newStore(t, volume), newStore(t, volume)

	var folders []string

	for _, s := range []*Store{first, second} {
		folder, err := s.Temporary()
		if err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(filepath.Join(folder, "download"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}

		folders = append(folders, folder)
	}

	sweep := func() int {
		t.Helper()

		removed, err := second.Sweep(t.Context(), func(Digest) bool { return false }, func(string) bool { return false })
		if err != nil {
			t.Fatal(err)
		}

		return removed
	}
	left := func() string { return strings.Join(files(t, volume), " ") }
	all := left()

	age(t, volume)

	if removed := sweep(); removed != 0 || left() != all {
		t.Errorf("%d folders of running processes were removed, left are %s", removed, left())
	}

	// The kernel releases the locks of a process that dies.
	if err := errors.Join(first.root.Close(), first.temporary[0].Close()); err != nil {
		t.Fatal(err)
	}

	if removed := sweep(); removed != 1 || strings.Contains(left(), filepath.Base(folders[0])) || !strings.Contains(left(), filepath.Base(folders[1])) {
		t.Errorf("after the first process died, %d folders were removed, left are %s", removed, left())
	}

	if err := second.Close(); err != nil || left() != "" {
		t.Errorf("after the second process ended: %v, left are %s", err, left())
	}
}

// TestFullVolume checks that the error for a full volume has a remedy for operators, that no stored file is lost, and that no temporary
// file is left.
func TestFullVolume(t *testing.T) {
	folder := t.TempDir()
	s := newStore(t, folder)
	kept := mustPut(t, s, tree(1, 10))

	// On a full volume, the file can be created, but there is no space for its content.
	s.open = func(name string, flags int, mode fs.FileMode) (*os.File, error) {
		created, err := s.root.OpenFile(name, flags, mode)
		if err != nil {
			return nil, err
		}

		if err := created.Close(); err != nil {
			return nil, err
		}

		return os.OpenFile("/dev/full", os.O_RDWR, 0)
	}

	const want = "the bundle store has no space left: enlarge the volume of "
	if _, err := s.Put(t.Context(), tree(2, 1000)); !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Put: %v", err)
	}

	if _, err := s.PutUpload("a", strings.NewReader("x"), 1); !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("PutUpload: %v", err)
	}

	if !s.Has(kept) || len(files(t, folder)) != 1 {
		t.Errorf("left are %v", files(t, folder))
	}
}

// TestConcurrentUse checks that readers see complete content while it is being replaced or removed.
func TestConcurrentUse(t *testing.T) {
	s := newStore(t, t.TempDir())
	digest := mustPut(t, s, tree(1, 100_000))
	want := wanted(t, tree(1, 100_000))

	var group sync.WaitGroup

	for range 3 {
		group.Go(func() {
			for range 20 {
				if _, err := s.Put(context.Background(), tree(1, 100_000)); err != nil {
					t.Error(err)
				}

				if _, err := s.PutUpload("a", bytes.NewReader(want), 1<<20); err != nil {
					t.Error(err)
				}

				if _, err := s.Sweep(context.Background(), never[Digest], never[string]); err != nil {
					t.Error(err)
				}
			}
		})
	}

	for range 20 {
		if !bytes.Equal(content(t, s, digest), want) {
			t.Error("the content differs")
		}

		if upload, _, err := s.OpenUpload("a"); err == nil {
			read, err := io.ReadAll(upload)
			if err != nil || !bytes.Equal(read, want) {
				t.Errorf("an upload of %d bytes: %v", len(read), err)
			}

			upload.Close()
		}
	}

	group.Wait()
}

const (
	crashFolder = "STORE_TEST_FOLDER"
	crashStep   = "STORE_TEST_STEP"
	crashSize   = 300_000
)

// TestCrashes kills a process at each write, in the middle of Put, PutUpload and Sweep. Afterwards, each file is complete or absent, the others are
// intact, and the next process continues and cleans up.
func TestCrashes(t *testing.T) {
	if folder := os.Getenv(crashFolder); folder != "" {
		untilKilled(t, folder)

		return
	}

	for step := 1; ; step++ {
		folder := t.TempDir()
		s := newStore(t, folder)
		old, swept := mustPut(t, s, tree(1, 1000)), mustPut(t, s, tree(3, 1000))

		if _, err := s.PutUpload("a", strings.NewReader("old"), 3); err != nil {
			t.Fatal(err)
		}

		age(t, folder)

		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashes$")
		child.Env = append(os.Environ(), crashFolder+"="+folder, crashStep+"="+strconv.Itoa(step))
		output, err := child.CombinedOutput()
		finished := err == nil

		if exit, ok := errors.AsType[*exec.ExitError](err); !finished && (!ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL) {
			t.Fatalf("step %d: %v\n%s", step, err, output)
		}

		afterCrash(t, fmt.Sprintf("step %d", step), folder, old, swept)

		if finished {
			if step < 10 {
				t.Errorf("there are only %d steps", step)
			}

			return
		}
	}
}

// untilKilled changes the store, and kills its process at a step.
func untilKilled(t *testing.T, folder string) {
	t.Helper()

	last, err := strconv.Atoi(os.Getenv(crashStep))
	if err != nil {
		t.Fatal(err)
	}

	s := newStore(t, folder)
	s.before = func() {
		if last--; last == 0 {
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				t.Error(err)
			}

			select {}
		}
	}

	kept := mustPut(t, newStore(t, t.TempDir()), tree(1, 1000))

	mustPut(t, s, tree(2, crashSize))

	if _, err := s.PutUpload("a", bytes.NewReader(wanted(t, tree(2, crashSize))), crashSize); err != nil {
		t.Fatal(err)
	}

	if _, err := s.Sweep(t.Context(), func(d Digest) bool { return d == kept }, always[string]); err != nil {
		t.Fatal(err)
	}
}

// afterCrash checks the store that a killed process has left.
func afterCrash(t *testing.T, when, folder string, old, swept Digest) {
	t.Helper()

	for _, file := range files(t, folder) {
		name := strings.TrimSuffix(filepath.Base(file), extension)
		if digest := Digest("sha256:" + name); filepath.Base(filepath.Dir(file)) == blobs && !newStore(t, folder).Has(digest) {
			t.Errorf("%s: %s is damaged", when, file)
		}
	}

	s := newStore(t, folder)
	if !s.Has(old) {
		t.Errorf("%s: the old archive is lost", when)
	}

	upload, _, err := s.OpenUpload("a")
	if err != nil {
		t.Fatalf("%s: the upload is lost: %v", when, err)
	}

	read, err := io.ReadAll(upload)
	upload.Close()

	if err != nil || string(read) != "old" && !bytes.Equal(read, wanted(t, tree(2, crashSize))) {
		t.Errorf("%s: the upload has %d bytes: %v", when, len(read), err)
	}

	digest := mustPut(t, s, tree(2, crashSize))
	if !bytes.Equal(content(t, s, digest), wanted(t, tree(2, crashSize))) {
		t.Errorf("%s: the new archive has other content", when)
	}

	age(t, folder)

	if _, err := s.Sweep(t.Context(), func(d Digest) bool { return d == old }, never[string]); err != nil {
		t.Error(err)
	}

	if left := files(t, folder); len(left) != 1 || !s.Has(old) || s.Has(swept) {
		t.Errorf("%s: left are %v", when, left)
	}
}
