package ebctl_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/ebctl/supportbundle"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// poison is a text with secrets of all recognizable forms. Each secret contains the word hidden.
const poison = "password=hidden1 token: 'hidden2' Authorization: Bearer hidden-3 postgres://user:hidden4@db:5432/ " +
	"eyJhbGciOiJIUzI1NiJ9.hidden5.hidden6 client-key-data: hidden7aGlkZGVu\n-----BEGIN PRIVATE KEY-----\nhidden8\n-----END PRIVATE KEY-----\n" +
	"login-hidden-9 {\\\"client_secret\\\": \\\"hidden10\\\"} hidden.person@example.com key hidden11AAbbcc0123456789AAbbcc0123456789AAbbcc= " +
	"Basic hidden12QWxhZGRpbjpvcGVu api_key=hidden13"

// poisoned returns a value of the given type in which every text is a secret. IDs are short, because they are parts of paths.
func poisoned(kind reflect.Type, name string) reflect.Value {
	value := reflect.New(kind).Elem()

	switch {
	case kind == reflect.TypeFor[time.Time]():
		value.Set(reflect.ValueOf(time.Unix(1, 0)))
	case kind.Kind() == reflect.String && (strings.HasSuffix(name, "ID") || name == "Cursor"):
		value.SetString(map[bool]string{false: "id-1"}[name == "Cursor"])
	case kind.Kind() == reflect.String:
		value.SetString(poison)
	case kind.Kind() == reflect.Int:
		value.SetInt(1)
	case kind.Kind() == reflect.Pointer:
		value.Set(poisoned(kind.Elem(), name).Addr())
	case kind.Kind() == reflect.Slice:
		value.Set(reflect.Append(value, poisoned(kind.Elem(), name)))
	case kind.Kind() == reflect.Map:
		value.Set(reflect.MakeMap(kind))
		value.SetMapIndex(reflect.ValueOf("clientSecret"), poisoned(kind.Elem(), name))
		value.SetMapIndex(reflect.ValueOf("free"), poisoned(kind.Elem(), name))
	case kind.Kind() == reflect.Interface:
		value.Set(reflect.ValueOf("hidden-free-text"))
	case kind.Kind() == reflect.Struct:
		for i := range kind.NumField() {
			value.Field(i).Set(poisoned(kind.Field(i).Type, kind.Field(i).Name))
		}
	}

	return value
}

// poisonedService serves documents with secrets in every text. It records the paths of the requests.
func poisonedService(t *testing.T) *httptest.Server {
	documents := map[string]any{
		"/status": operatorapi.Status{}, "/configuration": operatorapi.Configuration{}, "/operations": operatorapi.OperationList{},
		"/operations/id-1": operatorapi.Operation{}, "/audit": operatorapi.AuditList{}, "/runtimes": operatorapi.RuntimeList{},
		"/runtimes/id-1": operatorapi.Runtime{}, "/events": operatorapi.CloudEventList{}, "/processes": operatorapi.ProcessList{},
		"/catalog": operatorapi.Catalog{}, "/jobs": operatorapi.JobList{}, "/cloudaccounts": operatorapi.CloudAccountList{},
		"/orchestrations": operatorapi.OrchestrationList{}, "/quotas": operatorapi.QuotaList{}, "/v2/catalog": map[string]any{},
	}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document, found := documents[r.URL.Path]

		switch {
		case r.URL.Path == "/metrics" || r.URL.Path == "/healthz" || r.URL.Path == "/readyz":
			_, _ = io.WriteString(w, poison)
		case !found:
			refuse(w, http.StatusTeapot, "Poison", poison)
		default:
			_ = json.NewEncoder(w).Encode(poisoned(reflect.TypeOf(document), "").Interface())
		}
	}))
	t.Cleanup(server.Close)

	return server
}

func TestSupportBundleHasNoSecrets(t *testing.T) {
	t.Parallel()

	server := poisonedService(t)
	file := filepath.Join(t.TempDir(), "bundle.tgz")
	environment := map[string]string{
		"EBCTL_USERNAME": "alice", "EBCTL_PASSWORD": "login-hidden-9", "EBCTL_PROVISIONER_ADDRESS": server.URL, "EBCTL_PROVISIONER_TOKEN": "login-hidden-9",
	}

	var out, problems strings.Builder

	code := ebctl.App{
		Out: &out, Err: &problems, Environment: func(name string) string { return environment[name] },
		Terminal: func() (follow.Size, bool) { return follow.Size{}, false },
		Clock:    newFakeClock(time.Date(2026, 5, 1, 10, 5, 0, 0, time.UTC)), NewID: func() string { return "id" }, Version: "v1.2.3",
	}.Run(t.Context(), []string{
		"support-bundle", "--address", server.URL, "--operation", "id-1", "-o", file, "--status-address", "broker=" + server.URL,
	})
	if code != ebctl.ExitOK {
		t.Fatalf("exit code %d: %s", code, problems.String())
	}

	// Every document must be in the archive; otherwise the test would not check it.
	files := unpack(t, file)
	for _, name := range []string{
		"broker/status.json", "broker/configuration.json", "broker/operations/id-1.json", "broker/operations/id-1.txt", "broker/audit.json",
		"broker/instance.json", "broker/events.json", "broker/leftovers.json", "broker/metrics.txt", "broker/cloudaccounts.json",
		"provisioner/runtime.json", "provisioner/audit.json", "ebctl/doctor.json",
	} {
		if files[name] == "" {
			t.Errorf("%s is missing: %s", name, files[supportbundle.ManifestName])
		}
	}

	for name, content := range files {
		if at := strings.Index(content, "hidden"); at >= 0 {
			t.Errorf("%s contains a secret: …%s…", name, content[max(0, at-80):min(len(content), at+40)])
		}

		if strings.HasSuffix(name, ".json") && !json.Valid([]byte(content)) {
			t.Errorf("%s is no valid JSON", name)
		}
	}

	if strings.Contains(out.String(), "hidden") {
		t.Errorf("the summary contains a secret: %s", out.String())
	}
}

// unpack returns the contents of the files in an archive, by their names without the folder.
func unpack(t *testing.T, file string) map[string]string {
	t.Helper()

	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}

	files := map[string]string{}

	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}

		if err != nil {
			t.Fatal(err)
		}

		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}

		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = string(text)
	}
}
