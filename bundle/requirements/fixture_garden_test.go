//go:build garden

package requirements_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/bundle/content"
	"github.com/environment-broker/environment-broker/bundle/controller/bundles"
	"github.com/environment-broker/environment-broker/bundle/format"
	"github.com/environment-broker/environment-broker/test/apiserver"
)

// api is the configuration of the API server that all tests share.
var api *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(apiserver.Main(m, &api, apiserver.CRDs))
}

// anything is the format of the second class: it accepts every bundle with a file.
type anything struct{}

func (anything) Convert(_ context.Context, bundle fs.FS) (fs.FS, error) {
	if entries, err := fs.ReadDir(bundle, "."); err != nil || len(entries) == 0 {
		return nil, errors.Join(err, errors.New("the bundle is empty"))
	}
	return bundle, nil
}

const (
	plain  = "core-rukpak-io-plain"
	second = "example-com-anything"
)

func classes() map[string]bundles.Class {
	return map[string]bundles.Class{plain: {Name: plain, Format: format.Plain{}}, second: {Name: second, Format: anything{}}}
}

// eachClass runs a test with a provisioner of each class.
func eachClass(t *testing.T, test func(t *testing.T, f *fixture)) {
	for name, class := range classes() {
		t.Run(name, func(t *testing.T) { test(t, start(t, newDisk(), class)) })
	}
}

// fixture is a replica of a provisioner for Bundles, with fake sources.
type fixture struct {
	*testing.T
	client.WithWatch

	class     string
	namespace string
	sources   *sources
	disk      *disk
	unpacker  *bundles.Unpacker
	server    *httptest.Server
	registry  *prometheus.Registry
	stop      func()
}

// accessCache is the time for which the content server of the tests caches permissions.
const accessCache = 200 * time.Millisecond

func start(t *testing.T, store *disk, own ...bundles.Class) *fixture {
	t.Helper()
	f := &fixture{
		T: t, WithWatch: bundletest.Client(t, api), class: own[0].Name, namespace: bundletest.Namespace(t, api),
		sources: &sources{known: map[string]*supply{}}, disk: store, registry: prometheus.NewRegistry(),
	}
	skip := true
	cluster, err := ctrl.NewManager(rest.CopyConfig(api), manager.Options{
		Scheme: bundletest.Scheme(t), Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.unpacker, err = bundles.NewUnpacker(bundles.UnpackerOptions{
		Source: f.sources, Store: store, Classes: own, Workers: 2, Timeout: 5 * time.Second, Retry: 10 * time.Millisecond, MaxRetry: 100 * time.Millisecond,
		Folder: t.TempDir(), Registry: f.registry, Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	access, err := content.NewAccess(api, accessCache, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	f.server = httptest.NewTLSServer(access.Protect(content.NewServer(content.Options{
		Bundles: cluster.GetClient(), Live: cluster.GetAPIReader(), Store: store, Fill: f.unpacker.Fill, Uploaded: f.unpacker.Wake, Leading: func() bool { return true },
		Ours: func(class string) bool {
			return slices.ContainsFunc(own, func(c bundles.Class) bool { return c.Name == class })
		},
		MaxUpload: 1 << 20, Log: logr.Discard(),
	})))
	if err := bundles.Add(cluster, bundles.Options{
		Unpacker: f.unpacker, Namespace: f.namespace,
		ContentURL: func(name string) string { return content.URL(f.server.URL, name) },
		UploadURL:  func(name string) string { return content.UploadURL(f.server.URL, name) },
		CleanUp:    store.remove,
	}); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Add(manager.RunnableFunc(f.unpacker.Run)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- cluster.Start(ctx) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
		f.server.Close()
	})
	t.Cleanup(func() { f.stop() })
	return f
}

// supply is the result of fetching a Bundle from a fake source, and a record of the calls.
type supply struct {
	files   fs.FS
	pending string
	err     error
	panics  bool
	blocked chan struct{}
	fetches int
	from    []v1alpha1.BundleSource
}

var (
	errTerminal = errors.New("source type is not supported by this provisioner")
	errUnsigned = fmt.Errorf("%w: a signature", errTerminal)
)

type sources struct {
	mutex sync.Mutex
	known map[string]*supply
}

func (s *sources) set(name string, change func(*supply)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.known[name] == nil {
		s.known[name] = &supply{}
	}
	change(s.known[name])
}

func (s *sources) fetches(name string) (count int) {
	s.set(name, func(c *supply) { count = c.fetches })
	return count
}

func (s *sources) Fetch(ctx context.Context, name string, from v1alpha1.BundleSource, into *os.Root) (v1alpha1.BundleSource, string, error) {
	var now supply
	s.set(name, func(c *supply) { c.fetches++; c.from = append(c.from, from); now = *c })
	if now.panics {
		panic("a bug")
	}
	if now.blocked != nil {
		select {
		case <-now.blocked:
		case <-ctx.Done():
			return from, "", ctx.Err()
		}
	}
	if now.err != nil || now.pending != "" {
		return from, now.pending, now.err
	}
	packed, err := pack(now.files)
	if err != nil {
		return from, "", err
	}
	if err := archive.Extract(ctx, bytes.NewReader(packed), into, archive.DefaultLimits()); err != nil {
		return from, "", err
	}
	pinned := *from.DeepCopy()
	if pinned.Image != nil && !strings.Contains(pinned.Image.Ref, "@") {
		pinned.Image.Ref += "@" + digestOf(packed)
	}
	return pinned, "", nil
}

func (s *sources) Terminal(err error) bool { return errors.Is(err, errTerminal) }

func (s *sources) Reason(err error) string {
	if errors.Is(err, errUnsigned) {
		return v1alpha1.ReasonSignatureInvalid
	}
	return ""
}

func pack(files fs.FS) ([]byte, error) {
	var packed bytes.Buffer
	err := archive.Pack(context.Background(), files, &packed)
	return packed.Bytes(), err
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// disk is an in-memory store.
type disk struct {
	mutex   sync.Mutex
	blobs   map[string][]byte
	uploads map[string][]byte
	failing error
	// full is the error that Put returns, if it is not nil.
	full error
}

func newDisk() *disk { return &disk{blobs: map[string][]byte{}, uploads: map[string][]byte{}} }

func (d *disk) Put(_ context.Context, files fs.FS) (string, error) {
	packed, err := pack(files)
	if err != nil {
		return "", err
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.full != nil {
		return "", d.full
	}
	d.blobs[digestOf(packed)] = packed
	return digestOf(packed), nil
}

func (d *disk) Has(digest string) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.blobs[digest] != nil
}

func (d *disk) lose() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	clear(d.blobs)
}

type seekCloser struct{ *bytes.Reader }

func (seekCloser) Close() error { return nil }

func (d *disk) Open(digest string) (io.ReadSeekCloser, int64, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.blobs[digest] == nil {
		return nil, 0, fs.ErrNotExist
	}
	return seekCloser{bytes.NewReader(d.blobs[digest])}, int64(len(d.blobs[digest])), nil
}

func (d *disk) PutUpload(bundle string, from io.Reader) (bool, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return false, err
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	changed := !bytes.Equal(d.uploads[bundle], text)
	d.uploads[bundle] = text
	return changed, nil
}

func (d *disk) OpenUpload(bundle string) (io.ReadCloser, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.uploads[bundle] == nil {
		return nil, fs.ErrNotExist
	}
	return seekCloser{bytes.NewReader(d.uploads[bundle])}, nil
}

func (d *disk) remove(_ context.Context, bundle *v1alpha1.Bundle) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.failing != nil {
		return d.failing
	}
	delete(d.uploads, bundle.Name)
	return nil
}

func (d *disk) fail(err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.failing = err
}

func (d *disk) fill(err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.full = err
}

// exists returns "" if there is no Bundle with the given name.
func (f *fixture) exists(name string) string {
	err := f.Get(f.Context(), client.ObjectKey{Name: name}, &v1alpha1.Bundle{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	return fmt.Sprintf("the Bundle %s still exists: %v", name, err)
}

func (f *fixture) image(name string) *v1alpha1.Bundle {
	return f.bundle(name, v1alpha1.BundleSource{Type: v1alpha1.SourceTypeImage, Image: &v1alpha1.ImageSource{Ref: "example.com/" + name + ":v1"}})
}

// bundle creates a Bundle of the fixture's class, with a name that no other test uses.
func (f *fixture) bundle(name string, from v1alpha1.BundleSource) *v1alpha1.Bundle {
	f.Helper()
	bundle := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.BundleSpec{ProvisionerClassName: f.class, Source: from}}
	if err := f.Create(f.Context(), bundle); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { bundletest.Delete(f.T, f.WithWatch, bundle) })
	return bundle
}

// reaches waits for a phase, and returns the Bundle in it. Each observed status must have exactly one condition, Unpacked.
func (f *fixture) reaches(name string, phase v1alpha1.Phase, reason string) *v1alpha1.Bundle {
	f.Helper()
	bundle := &v1alpha1.Bundle{}
	bundletest.Eventually(f.T, func() string {
		if err := f.Get(f.Context(), client.ObjectKey{Name: name}, bundle); err != nil {
			return err.Error()
		}
		if bundle.Status.Phase != "" && (bundle.DeletionTimestamp.IsZero() || bundle.Status.Phase == phase) {
			f.complete(bundle)
		}
		condition := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.TypeUnpacked)
		if bundle.Status.Phase != phase || condition.Reason != reason {
			return fmt.Sprintf("the Bundle has not reached %s/%s: %+v", phase, reason, bundle.Status)
		}
		return ""
	})
	return bundle
}

// complete checks the rules for every status: requirements 4, 5 and 6, and a contentURL only for unpacked content.
func (f *fixture) complete(bundle *v1alpha1.Bundle) {
	f.Helper()
	status := bundle.Status
	phases := []v1alpha1.Phase{v1alpha1.PhasePending, v1alpha1.PhaseUnpacking, v1alpha1.PhaseFailing, v1alpha1.PhaseUnpacked}
	reasons := []string{
		v1alpha1.ReasonUnpackPending, v1alpha1.ReasonUnpacking, v1alpha1.ReasonUnpackSuccessful, v1alpha1.ReasonUnpackFailed,
		v1alpha1.ReasonProcessingFinalizerFailed, v1alpha1.ReasonSignatureInvalid,
	}
	switch {
	case !slices.Contains(phases, status.Phase):
		f.Fatalf("unknown phase %q", status.Phase)
	case len(status.Conditions) != 1 || status.Conditions[0].Type != v1alpha1.TypeUnpacked:
		f.Fatalf("want exactly the condition Unpacked, got %+v", status.Conditions)
	case !slices.Contains(reasons, status.Conditions[0].Reason) || status.Conditions[0].Message == "":
		f.Fatalf("want a documented reason and a message, got %+v", status.Conditions[0])
	case status.ObservedGeneration != bundle.Generation || status.Conditions[0].ObservedGeneration != bundle.Generation:
		f.Fatalf("want the observed generation %d, got %+v", bundle.Generation, status)
	case (status.Phase == v1alpha1.PhaseUnpacked) != (status.ContentURL != ""):
		f.Fatalf("want a contentURL exactly in the phase Unpacked, got %+v", status)
	}
}

func (f *fixture) request(method, path, token string, body io.Reader) (*http.Response, []byte) {
	f.Helper()
	request, err := http.NewRequestWithContext(f.Context(), method, f.server.URL+path, body)
	if err != nil {
		f.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return f.send(request)
}

func (f *fixture) send(request *http.Request) (*http.Response, []byte) {
	f.Helper()
	response, err := f.server.Client().Transport.RoundTrip(request) // follows no redirects
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		f.Fatal(err)
	}
	return response, text
}
