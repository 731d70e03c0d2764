package deployments

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// fetcher is a Fetcher with one file.
type fetcher struct {
	asked []string
	file  string
	err   error
}

func (f *fetcher) Fetch(_ context.Context, contentURL, digest string, into *os.Root) error {
	f.asked = append(f.asked, contentURL+" "+digest)

	return errors.Join(into.Mkdir("manifests", 0o750), into.WriteFile("manifests/all.yaml", []byte(f.file), 0o600), f.err)
}

// TestPlainContent reads content through the contentURL only, does not replace placeholders, and leaves no files behind.
func TestPlainContent(t *testing.T) {
	bundle := &v1alpha1.Bundle{Status: v1alpha1.BundleStatus{ContentURL: "https://content.example.com/b.tgz", Digest: "sha256:1"}}
	folder := t.TempDir()
	from := &fetcher{file: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {key: '${namespace}'}\n"}

	loaded, err := Plain{Fetcher: from, Folder: folder}.Load(t.Context(), Release{Bundle: bundle})
	objects := loaded.Objects

	if err != nil || len(objects) != 1 || len(from.asked) != 1 || from.asked[0] != "https://content.example.com/b.tgz sha256:1" {
		t.Fatalf("%v, %v, %v", objects, from.asked, err)
	}

	if data, _ := objects[0].Object["data"].(map[string]any); data["key"] != "${namespace}" {
		t.Errorf("the data is %v", data)
	}

	for _, from := range []*fetcher{{err: errors.New("away")}, {file: "nonsense"}} {
		if _, err := (Plain{Fetcher: from, Folder: folder}).Load(t.Context(), Release{Bundle: bundle}); err == nil {
			t.Errorf("no error for %+v", from)
		}
	}

	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("files remain: %v, %v", left, err)
	}
}
