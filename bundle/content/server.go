package content

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

const (
	bundlesPath = "/bundles/"
	uploadsPath = "/uploads/"
	// transferTimeout limits the duration of each download or upload.
	transferTimeout = 10 * time.Minute
	// readTimeout limits the duration of each call to the API server.
	readTimeout = 10 * time.Second
	// retryAfter is the value of the Retry-After header of responses with status 503, in seconds.
	retryAfter = 2
)

// paths matches the valid paths and captures the names of the Bundles. Requests with other paths never reach the store.
var paths = regexp.MustCompile(`^(/bundles/|/uploads/)([a-z0-9](?:[-.a-z0-9]*[a-z0-9])?)\.tgz$`)

// errTooLarge is the error for an upload that is larger than permitted.
var errTooLarge = errors.New("the upload is too large")

// Store contains the content of Bundles and the uploads. If a file does not exist, the error is fs.ErrNotExist.
type Store interface {
	Open(digest string) (content io.ReadSeekCloser, size int64, err error)
	// PutUpload replaces the upload for a Bundle. If reading the content fails, the previous upload stays.
	PutUpload(bundle string, content io.Reader) (changed bool, err error)
	OpenUpload(bundle string) (content io.ReadCloser, err error)
}

// Options configures a Server. All fields are required.
type Options struct {
	// Bundles reads from the cache. Live reads from the API server, and is used when a Bundle is missing from the cache or not
	// unpacked there: after a restart of the API server, this replica's watch may be behind the watch of the replica that unpacked
	// the Bundle.
	Bundles, Live client.Reader
	Store         Store
	// Ours reports whether this provisioner unpacks Bundles of the given class.
	Ours func(class string) bool
	// Fill starts to fetch, in the background, the content of an unpacked Bundle that this replica does not have.
	Fill func(bundle *v1alpha1.Bundle)
	// Uploaded is called for each new upload.
	Uploaded func(bundle string)
	// Leading reports whether this replica is the leader. Only the leader accepts uploads, because only its controller reads them.
	Leading func() bool
	// MaxUpload is the maximum size of an upload in bytes.
	MaxUpload int64
	Log       logr.Logger
}

// Server serves content. It does not authorize requests: wrap it in Access.Protect.
type Server struct{ options Options }

// NewServer returns a handler for the paths that the package documentation lists.
func NewServer(options Options) *Server { return &Server{options} }

// URL returns the address of a Bundle's content on the server with the given address, such as https://bundles.example.com.
func URL(server, bundle string) string { return server + bundlesPath + bundle + ".tgz" }

// UploadURL returns the address to which a Bundle's content is uploaded.
func UploadURL(server, bundle string) string { return server + uploadsPath + bundle + ".tgz" }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := paths.FindStringSubmatch(r.URL.Path)

	switch {
	case parts == nil:
		refuse(w, http.StatusNotFound, "there is nothing here: content is at "+bundlesPath+"<name>.tgz, and uploads go to "+uploadsPath+"<name>.tgz")
	case parts[1] == bundlesPath && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		s.download(w, r, parts[2])
	case parts[1] == uploadsPath && r.Method == http.MethodPut:
		s.upload(w, r, parts[2])
	default:
		w.Header().Set("Allow", map[string]string{bundlesPath: "GET, HEAD", uploadsPath: "PUT"}[parts[1]])
		refuse(w, http.StatusMethodNotAllowed, r.Method+" is not allowed here")
	}
}

// bundle returns the Bundle with the given name. If the Bundle does not exist, belongs to another provisioner's class or cannot be
// read, bundle sends an error response and returns nil.
func (s *Server) bundle(w http.ResponseWriter, r *http.Request, name string) *v1alpha1.Bundle {
	bundle, key := &v1alpha1.Bundle{}, client.ObjectKey{Name: name}

	err := s.options.Bundles.Get(r.Context(), key, bundle)
	if apierrors.IsNotFound(err) || err == nil && s.options.Ours(bundle.Spec.ProvisionerClassName) && !isUnpacked(bundle) {
		ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
		defer cancel()

		err = s.options.Live.Get(ctx, key, bundle)
	}

	switch {
	case apierrors.IsNotFound(err), err == nil && !s.options.Ours(bundle.Spec.ProvisionerClassName):
		refuse(w, http.StatusNotFound, "this provisioner has no Bundle "+name)
	case err != nil:
		s.options.Log.Error(err, "reading a Bundle failed", "bundle", name)
		retryLater(w, "the Bundle cannot be read at the moment")
	default:
		return bundle
	}

	return nil
}

func isUnpacked(bundle *v1alpha1.Bundle) bool {
	return bundle.Status.Phase == v1alpha1.PhaseUnpacked && bundle.Status.Digest != ""
}

func (s *Server) download(w http.ResponseWriter, r *http.Request, name string) {
	bundle := s.bundle(w, r, name)
	if bundle == nil {
		return
	}

	if !isUnpacked(bundle) {
		refuse(w, http.StatusNotFound, "the Bundle "+name+" is not unpacked")

		return
	}

	content, _, err := s.options.Store.Open(bundle.Status.Digest)

	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.options.Fill(bundle)
		retryLater(w, "this replica does not have the content yet, and is fetching it")

		return
	case err != nil:
		s.options.Log.Error(err, "opening content failed", "bundle", name)
		retryLater(w, "the content cannot be read at the moment")

		return
	}
	defer func() { _ = content.Close() }()

	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(transferTimeout))

	header := w.Header()
	header.Set("Etag", strconv.Quote(bundle.Status.Digest))
	header.Set("Content-Type", "application/gzip")
	header.Set("Cache-Control", "private, no-cache")
	header.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, content)
}

func (s *Server) upload(w http.ResponseWriter, r *http.Request, name string) {
	bundle := s.bundle(w, r, name)
	if bundle == nil {
		return
	}

	if bundle.Spec.Source.Type != v1alpha1.SourceTypeUpload {
		refuse(w, http.StatusConflict, fmt.Sprintf("the source of the Bundle %s is %s, not upload", name, bundle.Spec.Source.Type))

		return
	}

	if !s.options.Leading() {
		retryLater(w, "another replica accepts uploads")

		return
	}

	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(transferTimeout))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(transferTimeout))

	body := &bounded{reader: r.Body, left: s.options.MaxUpload}
	if r.ContentLength > s.options.MaxUpload {
		s.refuseUpload(w, name, errTooLarge)

		return
	}

	if bundle.Status.Phase == v1alpha1.PhaseUnpacked && s.complete(bundle) {
		s.compare(w, body, name)

		return
	}

	changed, err := s.options.Store.PutUpload(name, body)

	switch {
	case err != nil:
		s.refuseUpload(w, name, err)
	case !changed:
		s.options.Uploaded(name)
		w.WriteHeader(http.StatusNoContent)
	default:
		s.options.Uploaded(name)
		w.WriteHeader(http.StatusCreated)
	}
}

// complete reports whether this replica has the content of an unpacked Bundle. If the content is missing, a client can restore it
// by uploading the same content again. Content that cannot be read at the moment does not count as missing.
func (s *Server) complete(bundle *v1alpha1.Bundle) bool {
	content, _, err := s.options.Store.Open(bundle.Status.Digest)
	if err == nil {
		_ = content.Close()
	}

	return !errors.Is(err, fs.ErrNotExist)
}

// compare responds to an upload for an unpacked Bundle. The content of such a Bundle can no longer change, so the response is 204
// if the upload equals the stored one, and 409 otherwise.
func (s *Server) compare(w http.ResponseWriter, body io.Reader, name string) {
	conflict := "the Bundle " + name + " is unpacked, and its content cannot change: create another Bundle"

	former, err := s.options.Store.OpenUpload(name)
	if errors.Is(err, fs.ErrNotExist) {
		refuse(w, http.StatusConflict, conflict)

		return
	}

	if err != nil {
		s.refuseUpload(w, name, err)

		return
	}
	defer func() { _ = former.Close() }()

	want, err := digestOf(former)
	if err != nil {
		s.refuseUpload(w, name, err)

		return
	}

	got, err := digestOf(body)

	switch {
	case err != nil:
		s.refuseUpload(w, name, err)
	case got != want:
		refuse(w, http.StatusConflict, conflict)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func digestOf(content io.Reader) (digest [sha256.Size]byte, err error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, content); err != nil {
		return digest, fmt.Errorf("reading an archive: %w", err)
	}

	hash.Sum(digest[:0])

	return digest, nil
}

func (s *Server) refuseUpload(w http.ResponseWriter, name string, err error) {
	if errors.Is(err, errTooLarge) {
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("an upload must have at most %d bytes", s.options.MaxUpload))

		return
	}

	if !errors.Is(err, context.Canceled) {
		s.options.Log.Error(err, "storing an upload failed", "bundle", name)
	}

	retryLater(w, "the upload could not be stored")
}

// bounded is a reader that fails with errTooLarge when more than the permitted number of bytes are read.
type bounded struct {
	reader io.Reader
	left   int64
}

// Read implements io.Reader.
func (b *bounded) Read(into []byte) (int, error) {
	read, err := b.reader.Read(into[:min(int64(len(into)), max(b.left, 0)+1)])
	if b.left -= int64(read); b.left < 0 {
		return 0, errTooLarge
	}

	return read, err //nolint:wrapcheck // io.EOF must stay as it is
}

func refuse(w http.ResponseWriter, status int, text string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("Www-Authenticate", "Bearer")
	}

	http.Error(w, text, status)
}

func retryLater(w http.ResponseWriter, text string) {
	w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	refuse(w, http.StatusServiceUnavailable, text)
}
