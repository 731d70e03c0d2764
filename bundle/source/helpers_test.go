package source_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/source"
)

const (
	namespace = "bundles"
	hidden    = "very-secret-value"
)

// cluster is a reader that returns the ConfigMaps and Secrets of a namespace, by name.
type cluster struct {
	client.Reader

	configMaps map[string]corev1.ConfigMap
	secrets    map[string]map[string]string
}

// Get implements client.Reader.
func (c cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "objects"}, key.Name)
	if key.Namespace != namespace {
		return missing
	}

	switch object := into.(type) {
	case *corev1.ConfigMap:
		found, exists := c.configMaps[key.Name]
		if !exists {
			return missing
		}

		*object = found
	case *corev1.Secret:
		found, exists := c.secrets[key.Name]
		if !exists {
			return missing
		}

		object.Data = map[string][]byte{}
		for name, value := range found {
			object.Data[name] = []byte(value)
		}
	}

	return nil
}

// login returns a cluster with the Secret "login" for the user reader.
func login() cluster {
	return cluster{secrets: map[string]map[string]string{"login": {"username": "reader", "password": hidden}, "wrong": {"username": "other", "password": hidden}}}
}

// packed returns a tar.gz of the files.
func packed(tb testing.TB, files map[string]string) []byte {
	tb.Helper()

	var content bytes.Buffer

	zipped := gzip.NewWriter(&content)
	archive := tar.NewWriter(zipped)

	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}); err != nil {
			tb.Fatal(err)
		}

		if _, err := archive.Write([]byte(files[name])); err != nil {
			tb.Fatal(err)
		}
	}

	archive.Close()
	zipped.Close()

	return content.Bytes()
}

// fetch fetches a source and returns the result and the files.
func fetch(t *testing.T, options source.Options, from v1alpha1.BundleSource) (source.Result, map[string]string, error) {
	t.Helper()

	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()

	if options.Namespace == "" {
		options.Namespace = namespace
	}

	result, err := source.New(options).Fetch(t.Context(), source.Request{Bundle: "sample", Source: from}, root)
	if err != nil {
		if strings.Contains(err.Error(), hidden) {
			t.Errorf("the error contains a secret: %v", err)
		}

		return result, nil, err
	}

	files := map[string]string{}

	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		content, err := fs.ReadFile(root.FS(), name)
		files[name] = string(content)

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return result, files, nil
}

// mustFetch fetches a source, compares its files, and returns the resolved source.
func mustFetch(t *testing.T, options source.Options, from v1alpha1.BundleSource, want map[string]string) v1alpha1.BundleSource {
	t.Helper()

	result, files, err := fetch(t, options, from)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(want, files); diff != "" || result.Pending != "" {
		t.Errorf("pending %q, -want +got:\n%s", result.Pending, diff)
	}

	return result.Resolved
}

// mustFail fetches a source that fails with the text.
func mustFail(t *testing.T, reason string, options source.Options, from v1alpha1.BundleSource, terminal bool, want string) {
	t.Helper()

	_, _, err := fetch(t, options, from)
	if err == nil || !strings.Contains(err.Error(), want) || source.Terminal(err) != terminal {
		t.Errorf("%s: got %v, terminal %v; want %q, terminal %v", reason, err, source.Terminal(err), want, terminal)
	}
}

// mustTimeOut fetches a source whose server sends the beginning of the content only. While a slow machine does not receive even that in
// time, mustTimeOut repeats the fetch with more time.
func mustTimeOut(t *testing.T, reason string, options source.Options, from v1alpha1.BundleSource) {
	t.Helper()

	for options.Timeout = time.Second; ; options.Timeout *= 2 {
		_, _, err := fetch(t, options, from)
		if err != nil && strings.Contains(err.Error(), "did not respond in time") && options.Timeout < time.Minute {
			continue
		}

		if err == nil || !strings.Contains(err.Error(), "did not send the content in time") || source.Terminal(err) {
			t.Errorf("%s: got %v, terminal %v", reason, err, source.Terminal(err))
		}

		return
	}
}

// certificate returns the CA certificate for a server in PEM form.
func certificate(server *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}
