package releases

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/networks"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

const (
	// largestSource and largestUnpacked limit a file and its unpacked content, in bytes. All YAML files of a source are in memory while
	// its component is applied.
	largestSource   = 8 << 20
	largestUnpacked = 32 << 20

	// sourceTimeout limits a download, including its redirects.
	sourceTimeout = time.Minute
	maxRedirects  = 5
	// maxDownloads limits the concurrent downloads of a replica.
	maxDownloads = 4

	// singleManifest is the file name in the cache for a source that is a single YAML file.
	singleManifest = "manifest.yaml"
)

// SourcesOptions configure Sources.
type SourcesOptions struct {
	// Cache is a folder for downloaded sources. Replicas can share it. Sources in the folder are not downloaded again.
	Cache string
	// CacheSize limits the total size of the cached sources, in bytes; 0 means 1 GiB. See Sweep.
	CacheSize int64
	// Networks contains non-public networks from which downloads are allowed.
	Networks networks.Networks
	// Timeout limits a download; 0 means a minute.
	Timeout time.Duration
	// Authorities contains the CA certificates that the client trusts. If it is nil, the client trusts the system's CA certificates.
	Authorities *x509.CertPool
}

// Sources downloads the manifests of components that do not come from a release. A source is a YAML file, or a tar.gz of a folder with
// YAML files. Sources is safe for concurrent use, and several processes can share a cache.
type Sources struct {
	cache     string
	size      int64
	client    *http.Client
	downloads chan struct{}
}

// errRedirect reports a redirect that is not followed.
var errRedirect = errors.New("the redirect leads to an address without HTTPS, or there are too many redirects")

// NewSources returns Sources with the given options. It does not send requests.
func NewSources(options SourcesOptions) *Sources {
	timeout := options.Timeout
	if timeout == 0 {
		timeout = sourceTimeout
	}

	transport := options.Networks.Transport(timeout)
	transport.DisableKeepAlives, transport.DisableCompression = true, true // the digest is of the uncompressed response
	transport.TLSClientConfig = &tls.Config{RootCAs: options.Authorities, MinVersion: tls.VersionTLS12}

	return &Sources{cache: options.Cache, size: cmp.Or(options.CacheSize, cacheSize), downloads: make(chan struct{}, maxDownloads), client: &http.Client{
		Transport: transport, Timeout: timeout,
		// A redirect is safe: it carries no credentials, its address is checked like any other, and the digest pins the content.
		CheckRedirect: func(request *http.Request, via []*http.Request) error {
			if request.URL.Scheme != "https" || len(via) > maxRedirects {
				return errRedirect
			}

			return nil
		},
	}}
}

// files returns the manifests of a source, and downloads them unless they are in the cache.
func (s *Sources) files(ctx context.Context, from source) ([]installation.ManifestFile, error) {
	folder := filepath.Join(s.cache, from.digest)

	var unreadable error

	for range 2 {
		if err := s.provide(ctx, from, folder); err != nil {
			return nil, err
		}

		files, err := installation.ReadManifests(os.DirFS(folder), ".")
		if err == nil {
			return files, nil
		}

		unreadable = err

		if _, err := os.Stat(folder); err == nil {
			break
		} // Otherwise, another replica has removed the source from the cache in the meantime.
	}

	return nil, failure.Wrap(failure.Permanent, unreadable, "the source on %s contains no YAML file", from.host).
		WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}

// provide ensures that a source is in the cache, and records its use. It downloads the source if necessary.
func (s *Sources) provide(ctx context.Context, from source, folder string) error {
	if _, err := os.Stat(folder); err == nil {
		touch(folder)

		return nil
	}

	if err := s.fetch(ctx, from, folder); err != nil {
		return err
	}

	s.Sweep()

	return nil
}

// fetch downloads and unpacks a source into a temporary folder, which it then renames, so that a crash or a damaged download never leaves
// an incomplete source in the cache. The file is unpacked only after its digest is verified.
func (s *Sources) fetch(ctx context.Context, from source, folder string) error {
	select {
	case s.downloads <- struct{}{}:
		defer func() { <-s.downloads }()
	default:
		return failure.New(failure.Transient, "the source on %s is waiting for other downloads", from.host).
			WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
	}

	partial, err := s.temporary()
	if err != nil {
		return notStored(from, err)
	}
	defer os.RemoveAll(partial) //nolint:errcheck // After a success, the content has been renamed.

	archive, content := filepath.Join(partial, "archive"), filepath.Join(partial, "content")

	if err := s.download(ctx, from, archive); err != nil {
		return err
	}

	if err := expand(ctx, archive, content); err != nil {
		if _, broken := errors.AsType[*brokenError](err); broken {
			return failure.Wrap(failure.Permanent, err, "the source on %s must be a YAML file, or a tar.gz that contains only files and folders and is at most %d MiB when unpacked",
				from.host, largestUnpacked>>20).WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
		}

		return notStored(from, err)
	}

	err = os.Rename(content, folder)
	if _, there := os.Stat(folder); there == nil {
		return nil // Another call has fetched the same source.
	}

	return notStored(from, err)
}

// notStored returns the error for a source that cannot be written to the cache.
func notStored(from source, err error) error {
	return failure.Wrap(failure.Transient, err, "the source on %s cannot be stored: an operator must check the folder APP_KYMA_SOURCES_CACHE_PATH",
		from.host).WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}

// temporary creates a temporary folder in the cache and returns its path.
func (s *Sources) temporary() (string, error) {
	if err := os.MkdirAll(s.cache, 0o750); err != nil {
		return "", err
	}

	return os.MkdirTemp(s.cache, prefixPartial)
}

// download writes the file of a source to the given path, and verifies its size and digest.
func (s *Sources) download(ctx context.Context, from source, to string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.address, nil)
	if err != nil {
		return failure.Wrap(failure.Permanent, err, "the source on %s has no valid address", from.host).
			WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
	}

	response, err := s.client.Do(request)
	if err != nil {
		return unreachable(from, err)
	}
	defer response.Body.Close() //nolint:errcheck // The body has been read.

	if response.StatusCode != http.StatusOK {
		return refused(from, response.StatusCode)
	}

	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return notStored(from, err)
	}

	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, sum), io.LimitReader(response.Body, largestSource+1))

	err = errors.Join(err, file.Close())
	_, local := errors.AsType[*fs.PathError](err)

	switch {
	case local:
		return notStored(from, err)
	case err != nil:
		return unreachable(from, err)
	case size > largestSource:
		return failure.New(failure.Permanent, "the source on %s is larger than %d MiB: split it into several components", from.host, largestSource>>20).
			WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
	}

	if digest := hex.EncodeToString(sum.Sum(nil)); digest != from.digest {
		return failure.New(failure.Permanent, "the source on %s has the digest %s instead of %s: check the file, or correct the digest in the order",
			from.host, digest, from.digest).WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
	}

	return nil
}

// refused returns the error for a response without the file. The error is transient if the server is overloaded, fails or reports
// a timeout, because a later download may succeed.
func refused(from source, status int) error {
	kind := failure.Permanent
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout {
		kind = failure.Transient
	}

	return failure.New(kind, "the source cannot be fetched: %s responds with status %d %s", from.host, status, http.StatusText(status)).
		WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}

// unreachable returns the error of a download without a complete response. The error does not contain the text of err, because
// transport errors may quote redirects that contain credentials.
func unreachable(from source, err error) error {
	kind, text := failure.Transient, "the connection failed"
	timeout := net.Error(nil)

	switch {
	case errors.Is(err, networks.ErrRefused):
		kind, text = failure.Permanent, "its address is not public, and APP_KYMA_SOURCES_NETWORKS of the Provisioner does not allow it"
	case errors.Is(err, errRedirect):
		kind, text = failure.Permanent, fmt.Sprintf("it redirects to an address without HTTPS, or more than %d times", maxRedirects)
	case errors.As(err, &timeout) && timeout.Timeout():
		text = "it did not send the file in time"
	}

	return failure.Wrap(kind, errors.New(text), "the source cannot be fetched from %s: %s", from.host, text).
		WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}

// expand writes the content of a downloaded file into a new folder: the files of a tar.gz, or the file itself.
func expand(ctx context.Context, archive, folder string) error {
	if err := os.Mkdir(folder, 0o750); err != nil {
		return err
	}

	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()

	content := bufio.NewReader(file)
	if magic, _ := content.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		return unpack(ctx, content, folder, largestUnpacked)
	}

	return os.Rename(archive, filepath.Join(folder, singleManifest))
}
