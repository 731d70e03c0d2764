package releases_test

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/upstream/networks"
	"github.com/environment-broker/environment-broker/provisioner/installation/releases"
)

// TestSweep fills a cache for three sources with five, of which two were used recently.
func TestSweep(t *testing.T) {
	server, cache := newSourceServer(t), t.TempDir()

	permitted, err := networks.Parse([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}

	authorities := x509.NewCertPool()
	authorities.AddCert(server.Certificate())

	const size = 3 << 10

	sources := releases.NewSources(releases.SourcesOptions{Cache: cache, CacheSize: size, Networks: permitted, Authorities: authorities})
	catalog := releases.New(releases.Folder{FS: sample()}).WithSources(sources)

	// get installs the named source, which has 1 KiB, and returns its folder.
	get := func(name string) string {
		t.Helper()

		content := pod + "# " + name
		content += strings.Repeat("#", 1<<10-len(content))
		server.files["/"+name] = content
		source := server.source("/"+name, content)

		if _, err := catalog.Manifests(t.Context(), source); err != nil {
			t.Fatal(err)
		}

		return source[strings.LastIndex(source, "=")+1:]
	}

	// age sets when a file or folder was used last.
	age := func(name string, ago time.Duration) {
		t.Helper()

		at := time.Now().Add(-ago)
		if err := os.Chtimes(filepath.Join(cache, name), at, at); err != nil {
			t.Fatal(err)
		}
	}

	want := func(reason string, names ...string) {
		t.Helper()

		entries, err := os.ReadDir(cache)
		if err != nil {
			t.Fatal(err)
		}

		got := []string{}
		for _, entry := range entries {
			got = append(got, entry.Name())
		}

		slices.Sort(names)

		if diff := cmp.Diff(names, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", reason, diff)
		}
	}

	first, second, third := get("first"), get("second"), get("third")
	age(first, 4*time.Hour)
	age(second, 3*time.Hour)
	age(third, 2*time.Hour)

	get("first") // is used again, so that the second one is the oldest

	for _, each := range []string{".partial-dead", ".removed-dead", ".partial-alive", "lost+found"} {
		if err := os.Mkdir(filepath.Join(cache, each), 0o750); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.WriteFile(filepath.Join(cache, "README"), make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, each := range []string{".partial-dead", ".removed-dead", "lost+found", "README"} {
		age(each, 24*time.Hour)
	}

	fourth := get("fourth")
	want("a fetch sweeps", first, third, fourth, ".partial-alive", "lost+found", "README")

	fifth, requests := get("fifth"), server.requests.Load()
	want("the next one removes the third", first, fourth, fifth, ".partial-alive", "lost+found", "README")

	sixth := get("sixth")
	want("sources in use stay", first, fourth, fifth, sixth, ".partial-alive", "lost+found", "README")

	for _, each := range []string{first, fourth, fifth} {
		age(each, 2*time.Hour)
	}

	age(first, 3*time.Hour)
	sources.Sweep()
	want("a start sweeps, too", fourth, fifth, sixth, ".partial-alive", "lost+found", "README")

	get("first")

	if sent := server.requests.Load() - requests; sent != 2 {
		t.Errorf("%d requests were sent, want one for the sixth source and one for the removed one", sent)
	}

	releases.NewSources(releases.SourcesOptions{Cache: filepath.Join(cache, "none")}).Sweep() // nothing to do
}
