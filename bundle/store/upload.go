package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ErrTooLarge reports an upload that is larger than permitted.
var ErrTooLarge = errors.New("the upload is too large")

// PutUpload stores the archive that a client has uploaded for a Bundle, and replaces the previous upload. It reports whether the
// content has changed. If the content has more than the permitted number of bytes, it returns ErrTooLarge.
func (s *Store) PutUpload(bundle string, content io.Reader, permitted int64) (changed bool, err error) {
	name, err := uploadName(bundle)
	if err != nil {
		return false, err
	}

	sum := sha256.New()
	write := func(to io.Writer) error {
		copied, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(content, permitted+1))
		if err == nil && copied > permitted {
			return fmt.Errorf("%w: at most %d bytes are permitted", ErrTooLarge, permitted)
		}

		return err
	}

	former, err := s.uploadDigest(name)
	if err != nil {
		return false, s.explain(err)
	}

	if err := s.write(write, func() string { return name }); err != nil {
		return false, s.explain(err)
	}

	return !bytes.Equal(former, sum.Sum(nil)), nil
}

// uploadDigest returns the digest of an upload, or nil if the upload does not exist.
func (s *Store) uploadDigest(name string) ([]byte, error) {
	file, err := s.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}
	defer file.Close()

	sum := sha256.New()
	_, err = io.Copy(sum, file)

	return sum.Sum(nil), err
}

// OpenUpload returns the upload for a Bundle and its size. If there is no upload, the error is fs.ErrNotExist. An upload that is
// open can still be read after another one has replaced it.
func (s *Store) OpenUpload(bundle string) (io.ReadSeekCloser, int64, error) {
	name, err := uploadName(bundle)
	if err != nil {
		return nil, 0, err
	}

	file, err := s.root.Open(name)
	if err != nil {
		return nil, 0, fmt.Errorf("opening the upload for Bundle %s: %w", bundle, err)
	}

	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}

	return file, info.Size(), nil
}

// RemoveUpload removes the upload for a Bundle. It also succeeds if there is no upload.
func (s *Store) RemoveUpload(bundle string) error {
	name, err := uploadName(bundle)
	if err != nil {
		return err
	}

	return ignoreMissing(s.root.Remove(name))
}

// uploadName returns the path of an upload.
func uploadName(bundle string) (string, error) {
	if len(validation.IsDNS1123Subdomain(bundle)) > 0 {
		return "", absent("%q is not a valid Bundle name: it must be a DNS subdomain", bundle)
	}

	return filepath.Join(uploads, bundle+extension), nil
}

// ignoreMissing returns nil if the error is fs.ErrNotExist, and otherwise the error.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	return err
}
