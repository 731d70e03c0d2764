package service

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/source"
	"github.com/environment-broker/environment-broker/bundle/store"
)

// fetcher adapts the sources to bundles.Source, the interface of the Bundle controller.
type fetcher struct{ sources source.Sources }

// Fetch implements bundles.Source.
func (f fetcher) Fetch(ctx context.Context, name string, from v1alpha1.BundleSource, into *os.Root) (v1alpha1.BundleSource, string, error) {
	result, err := f.sources.Fetch(ctx, source.Request{Bundle: name, Source: from}, into)

	return result.Resolved, result.Pending, err //nolint:wrapcheck // the error is a message for the user
}

// Terminal implements bundles.Source.
func (fetcher) Terminal(err error) bool { return source.Terminal(err) }

// Reason implements bundles.Source.
func (fetcher) Reason(err error) string {
	if refused, ok := errors.AsType[*source.SignatureError](err); ok {
		return refused.Reason
	}

	return ""
}

// contents implements the store interfaces of the Bundle controller and the content server.
type contents struct {
	*store.Store

	maxUpload int64
}

func (c contents) Put(ctx context.Context, content fs.FS) (string, error) {
	digest, err := c.Store.Put(ctx, content)

	return string(digest), err
}

func (c contents) Has(digest string) bool { return c.Store.Has(store.Digest(digest)) }

func (c contents) Open(digest string) (io.ReadSeekCloser, int64, error) {
	return c.Store.Open(store.Digest(digest))
}

func (c contents) PutUpload(bundle string, content io.Reader) (bool, error) {
	return c.Store.PutUpload(bundle, content, c.maxUpload)
}

func (c contents) OpenUpload(bundle string) (io.ReadCloser, error) {
	upload, _, err := c.Store.OpenUpload(bundle)

	return upload, err
}
