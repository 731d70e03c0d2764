package store

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/bundle/archive"
)

const (
	folderMode = 0o700
	bufferSize = 128 << 10
	algorithm  = "sha256"
	extension  = ".tgz"

	blobs     = algorithm
	uploads   = "uploads"
	partial   = "partial"
	temporary = "temporary"

	// grace is how long a file is kept after it was stored even if no Bundle refers to it, because the status of its Bundle might not
	// have been written yet.
	grace = 15 * time.Minute
)

// Digest is the digest of an archive: "sha256:", followed by 64 hexadecimal digits.
type Digest string

// Hex returns the hexadecimal digits, or "" if the digest is not valid.
func (d Digest) Hex() string {
	digits, found := strings.CutPrefix(string(d), algorithm+":")
	if raw, err := hex.DecodeString(digits); !found || err != nil || len(raw) != sha256.Size || strings.ToLower(digits) != digits {
		return ""
	}

	return digits
}

// Store is a folder with archives. It is safe for concurrent use.
type Store struct {
	root *os.Root
	path string

	lock sync.Mutex
	// verified maps each archive whose digest this process has verified to the state that its file had at that time.
	verified map[Digest]fileState

	// temporary contains the locks of this process's temporary folders.
	temporary []*os.File

	// before is called before each change to the folder. Tests use it to end the process at that point.
	before func()
	// open opens a new file for writing.
	open func(name string, flags int, mode fs.FileMode) (*os.File, error)
}

// fileState identifies the content of a file: it differs after each write to the file.
type fileState struct {
	size     int64
	modified time.Time
}

func stateOf(info fs.FileInfo) fileState { return fileState{info.Size(), info.ModTime()} }

// New opens the store in a folder. It creates the folder if needed.
func New(folder string) (*Store, error) {
	for _, part := range []string{blobs, uploads, partial, temporary} {
		if err := os.MkdirAll(filepath.Join(folder, part), folderMode); err != nil { //nolint:gosec // the operator names the folder
			return nil, fmt.Errorf("creating the bundle store: %w", err)
		}
	}

	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("opening the bundle store: %w", err)
	}

	return &Store{root: root, path: folder, verified: map[Digest]fileState{}, before: beforeChange, open: root.OpenFile}, nil
}

// Close removes the temporary folders of this process, and closes the store. Archives that are open can still be read.
func (s *Store) Close() error {
	var errs []error
	for _, lock := range s.temporary {
		errs = append(errs, s.removeTemporary(filepath.Join(temporary, filepath.Base(lock.Name()))), lock.Close())
	}

	return errors.Join(append(errs, s.root.Close())...)
}

// Put packs the tree and stores the archive. Equal trees have the same digest and are stored only once. It fails with an
// archive.InvalidError if the tree cannot be packed.
func (s *Store) Put(ctx context.Context, tree fs.FS) (Digest, error) {
	var digest Digest

	sum := sha256.New()
	write := func(to io.Writer) error { return archive.Pack(ctx, tree, io.MultiWriter(to, sum)) }
	name := func() string {
		digest = Digest(algorithm + ":" + hex.EncodeToString(sum.Sum(nil)))

		return blobName(digest)
	}

	return digest, s.explain(s.write(write, name))
}

// write writes the content to a temporary file, and then renames the file to the result of name. It holds the lock while it
// renames. Otherwise, Sweep could read the age of the replaced file and then remove the new one.
func (s *Store) write(content func(io.Writer) error, name func() string) error {
	s.before()

	unnamed := filepath.Join(partial, uuid.NewString())

	file, err := s.open(unnamed, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer s.root.Remove(unnamed) //nolint:errcheck // After a success, the file has been renamed.
	defer file.Close()

	if err := s.fill(file, content); err != nil {
		return err
	}

	target := name()

	s.before()
	s.lock.Lock()
	err = s.root.Rename(unnamed, target)
	s.lock.Unlock()

	if err != nil {
		return err
	}

	s.before()

	return s.syncFolder(filepath.Dir(target))
}

// fill writes the content to the disk. It locks the file to show other processes that the file is in use. The kernel releases the
// lock when the process dies.
func (s *Store) fill(file *os.File, content func(io.Writer) error) error {
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}

	buffered := bufio.NewWriterSize(writer{file, s}, bufferSize)
	if err := content(buffered); err != nil {
		return err
	}

	if err := buffered.Flush(); err != nil {
		return err
	}

	s.before()

	return file.Sync()
}

// writer writes to a file. It calls before ahead of each write.
type writer struct {
	file  *os.File
	store *Store
}

// Write implements io.Writer.
func (w writer) Write(content []byte) (int, error) {
	w.store.before()

	return w.file.Write(content)
}

// syncFolder flushes a folder to disk, so that a rename in it survives a crash.
func (s *Store) syncFolder(name string) error {
	folder, err := s.root.Open(name)
	if err != nil {
		return err
	}

	return errors.Join(folder.Sync(), folder.Close())
}

// Has reports whether an archive is stored and complete.
func (s *Store) Has(digest Digest) bool {
	file, _, err := s.Open(digest)
	if err != nil {
		return false
	}

	return file.Close() == nil
}

// Open returns an archive and its size. It verifies the digest when the process opens the archive for the first time, and again if
// the file has changed. If the archive is missing or damaged, the error is fs.ErrNotExist. An archive that is open can still be
// read after it is removed.
func (s *Store) Open(digest Digest) (io.ReadSeekCloser, int64, error) {
	if digest.Hex() == "" {
		return nil, 0, absent("%q is not the digest of an archive", digest)
	}

	file, err := s.root.Open(blobName(digest))
	if err != nil {
		return nil, 0, fmt.Errorf("opening the archive %s: %w", digest, err)
	}

	size, err := s.verify(file, digest)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("opening the archive %s: %w", digest, err), file.Close())
	}

	return file, size, nil
}

// verify compares the content of an archive with its digest. It removes a damaged archive, so that the next Put replaces it.
func (s *Store) verify(file *os.File, digest Digest) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}

	s.lock.Lock()
	known := s.verified[digest]
	s.lock.Unlock()

	if known == stateOf(info) {
		return info.Size(), nil
	}

	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return 0, err
	}

	if hex.EncodeToString(sum.Sum(nil)) != digest.Hex() {
		return 0, errors.Join(absent("its content is damaged"), s.removeIfSame(digest, info))
	}

	s.lock.Lock()
	s.verified[digest] = stateOf(info)
	s.lock.Unlock()

	_, err = file.Seek(0, io.SeekStart)

	return info.Size(), err
}

// removeIfSame removes a damaged archive, unless it has been replaced in the meantime.
func (s *Store) removeIfSame(digest Digest, damaged fs.FileInfo) error {
	current, err := s.root.Stat(blobName(digest))
	if err != nil || !os.SameFile(current, damaged) {
		return nil //nolint:nilerr // The archive no longer exists.
	}

	return s.root.Remove(blobName(digest))
}

// absentError reports content that is treated as missing, and contains the reason. It matches fs.ErrNotExist.
type absentError string

func absent(format string, args ...any) error { return absentError(fmt.Sprintf(format, args...)) }

// Error implements error.
func (e absentError) Error() string { return string(e) }

// Is makes errors.Is(err, fs.ErrNotExist) true.
func (absentError) Is(target error) bool { return target == fs.ErrNotExist }

// blobName returns the path of an archive in the folder.
func blobName(digest Digest) string { return filepath.Join(blobs, digest.Hex()+extension) }
