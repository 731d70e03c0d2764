package source

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Uploads returns the content that a client has uploaded for a Bundle, and its size. If there is none, the error is
// fs.ErrNotExist.
type Uploads interface {
	OpenUpload(bundle string) (io.ReadSeekCloser, int64, error)
}

// uploadSource returns the content that clients have uploaded.
type uploadSource struct{ options Options }

// Fetch implements Fetcher. Until a client uploads the content, the result is pending.
func (s *uploadSource) Fetch(ctx context.Context, request Request, into *os.Root) (Result, error) {
	upload, _, err := s.options.Uploads.OpenUpload(request.Bundle)
	if errors.Is(err, fs.ErrNotExist) {
		return Result{Resolved: request.Source, Pending: "waiting for the upload of the content"}, nil
	}

	if err != nil {
		return Result{}, failure.Wrap(failure.Transient, err, "the upload cannot be read")
	}
	defer upload.Close() //nolint:errcheck // It has been read only.

	expected := ""
	if request.Source.Upload != nil {
		expected = request.Source.Upload.SHA256
	}

	if _, err := extractVerified(ctx, upload, into, s.options.Limits, sha256.New(), expected); err != nil {
		return Result{}, unpacked(err, "the upload")
	}

	return Result{Resolved: request.Source}, nil
}
