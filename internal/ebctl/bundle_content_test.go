package ebctl_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/internal/ebctl"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
)

// contentServer is an API server with the Bundle addon, and its content server. Clients authenticate with the token "right".
type contentServer struct {
	*httptest.Server

	content  []byte
	digest   string
	phase    string // "" for an unpacked Bundle
	busy     int    // the number of requests for content that get 503
	redirect string
	uploads  map[string][]byte
}

func newContentServer(t *testing.T) *contentServer {
	t.Helper()

	var packed bytes.Buffer
	if err := archive.Pack(t.Context(), fstest.MapFS{
		"manifests/one.yaml": {Data: []byte("kind: ConfigMap\n")}, "manifests/two.yaml": {Data: []byte("two")},
	}, &packed); err != nil {
		t.Fatal(err)
	}

	sum := sha256.Sum256(packed.Bytes())
	server := &contentServer{content: packed.Bytes(), digest: "sha256:" + hex.EncodeToString(sum[:]), uploads: map[string][]byte{}}
	server.Server = httptest.NewTLSServer(server)
	t.Cleanup(server.Close)

	return server
}

func (s *contentServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer right" {
		http.Error(w, "send a bearer token that the cluster accepts", http.StatusUnauthorized)

		return
	}

	if r.URL.Path == "/apis/core.rukpak.io/v1alpha1/bundles/addon" {
		bundle := v1alpha1.Bundle{Status: v1alpha1.BundleStatus{Digest: s.digest, ContentURL: s.URL + "/bundles/addon.tgz"}}
		bundle.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindBundle))

		if s.phase != "" {
			bundle.Status = v1alpha1.BundleStatus{Phase: v1alpha1.Phase(s.phase)}
		}

		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(bundle); err != nil {
			panic(err) // the command fails
		}

		return
	}

	switch {
	case s.busy > 0:
		s.busy--

		http.Error(w, "another replica accepts uploads", http.StatusServiceUnavailable)
	case s.redirect != "":
		http.Redirect(w, r, s.redirect, http.StatusTemporaryRedirect)
	case r.Method == http.MethodPut && r.URL.Path == "/uploads/unpacked.tgz":
		http.Error(w, "the content cannot change", http.StatusConflict)
	case r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/uploads/"):
		s.uploads[r.URL.Path], _ = io.ReadAll(r.Body)

		w.WriteHeader(http.StatusCreated)
	case r.URL.Path == "/bundles/addon.tgz":
		_, _ = w.Write(s.content)
	default:
		http.NotFound(w, r)
	}
}

// run runs 'ebctl bundle' with the token in the kubeconfig, and checks its exit code.
func (s *contentServer) run(t *testing.T, token string, wantCode int, args ...string) (out, problems string) {
	t.Helper()

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	config := clientcmdapi.NewConfig()
	config.Clusters["tests"] = &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: ca}
	config.AuthInfos["tests"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["tests"] = &clientcmdapi.Context{Cluster: "tests", AuthInfo: "tests"}
	config.CurrentContext = "tests"

	folder := t.TempDir()
	kubeconfig, caFile := filepath.Join(folder, "kubeconfig"), filepath.Join(folder, "ca.pem")

	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(caFile, ca, 0o600); err != nil {
		t.Fatal(err)
	}

	var stdout, stderr strings.Builder

	code := ebctl.App{
		In: strings.NewReader(""), Out: &stdout, Err: &stderr,
		Environment: func(name string) string {
			return map[string]string{"KUBECONFIG": kubeconfig, "EBCTL_TOKEN": "of the broker"}[name]
		},
		Terminal: func() (follow.Size, bool) { return follow.Size{}, false },
		Clock:    newFakeClock(time.Now()),
	}.RunChecked(t.Context(), append([]string{"bundle", "--ca-file=" + caFile}, args...))

	if code != wantCode {
		t.Fatalf("%q: exit code %d, want %d\n%s%s", args, code, wantCode, stdout.String(), stderr.String())
	}

	return stdout.String(), stderr.String()
}

func TestBundleContent(t *testing.T) {
	t.Parallel()

	server := newContentServer(t)
	server.busy = 2

	out, _ := server.run(t, "right", ebctl.ExitOK, "content", "addon", "-o", "json")
	want := `"files": [
    {
      "path": "manifests/one.yaml",
      "size": 16
    },
    {
      "path": "manifests/two.yaml",
      "size": 3
    }
  ]`

	if !strings.Contains(out, want) || !strings.Contains(out, server.digest) {
		t.Errorf("got %s", out)
	}

	folder := t.TempDir()
	file := filepath.Join(folder, "addon.tgz")
	server.run(t, "right", ebctl.ExitOK, "content", "addon", "--output-file", file)

	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, server.content) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}

	// Content with another digest leaves the file as it is.
	server.content = append(bytes.Clone(server.content), 0)

	_, problems := server.run(t, "right", ebctl.ExitError, "content", "addon", "--output-file", file)
	if !strings.Contains(problems, "instead of "+server.digest) {
		t.Errorf("got %s", problems)
	}

	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v", entries, err)
	}
}

func TestBundleContentErrors(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		prepare func(server *contentServer)
		args    []string
		code    int
		text    string
	}{
		"NotUnpacked": {func(s *contentServer) { s.phase = "Pending" }, []string{"addon"}, ebctl.ExitError, "has no content yet"},
		"Busy":        {func(s *contentServer) { s.busy = 9 }, []string{"addon"}, ebctl.ExitError, "responded with status 503"},
		"Redirect":    {func(s *contentServer) { s.redirect = "https://other.example.com/" }, []string{"addon"}, ebctl.ExitError, "responded with status 307"},
		"Token":       {func(*contentServer) {}, []string{"addon", "--token", "wrong"}, ebctl.ExitError, "bundle-reader"},
		"Authority":   {func(*contentServer) {}, []string{"addon", "--ca-file="}, ebctl.ExitError, "set --ca-file"},
		"Missing":     {func(*contentServer) {}, []string{"other"}, ebctl.ExitNotFound, "ebctl bundle list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			server := newContentServer(t)
			test.prepare(server)

			_, problems := server.run(t, "right", test.code, append([]string{"content"}, test.args...)...)
			if !strings.Contains(problems, test.text) {
				t.Errorf("no %q in %s", test.text, problems)
			}
		})
	}
}

func TestBundlePush(t *testing.T) {
	t.Parallel()

	server, folder := newContentServer(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "object.yaml"), []byte("kind: ConfigMap\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	server.busy = 1
	server.run(t, "right", ebctl.ExitOK, "push", "addon", folder, "--server", server.URL+"/")
	first := server.uploads["/uploads/addon.tgz"]

	// Times of files are not part of the archive. With --token, the token of the kubeconfig is not sent.
	if err := os.Chtimes(filepath.Join(folder, "object.yaml"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}

	server.run(t, "wrong", ebctl.ExitOK, "push", "addon", folder, "--server", server.URL, "--token", "right")

	if second := server.uploads["/uploads/addon.tgz"]; len(first) == 0 || !bytes.Equal(first, second) {
		t.Errorf("got %d and %d bytes", len(first), len(second))
	}

	server.run(t, "right", ebctl.ExitConflict, "push", "unpacked", folder, "--server", server.URL)
	server.run(t, "wrong", ebctl.ExitError, "push", "addon", folder, "--server", server.URL)
	server.run(t, "", ebctl.ExitUsage, "push", "addon", folder, "--server", server.URL)
	server.run(t, "right", ebctl.ExitUsage, "push", "addon", filepath.Join(folder, "none"), "--server", server.URL)
	server.run(t, "right", ebctl.ExitUsage, "push", "addon", folder)

	_, problems := server.run(t, "right", ebctl.ExitError, "push", "addon", folder, "--server", "http://bundles.example.com")
	if !strings.Contains(problems, "not an https address") {
		t.Errorf("got %s", problems)
	}
}
