package catalog_test

import (
	"encoding/json"
	"io/fs"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/resources"
)

// The public IDs of the service and its plans. Platforms have stored them, so they must never change.
const (
	serviceID = "47c9dcbf-ff30-448e-ab36-d3bad66ba281"
	planAWS   = "361c511f-f939-4621-b228-d0fb79a1fe15"
	planAzure = "4deee563-e5ec-4731-b9b1-53b42d855f0c"
	planGCP   = "ca6e5357-707f-4565-bbbd-b3ab732597c6"
	planTrial = "7d55d31d-35ae-4438-bf13-6ffdfa107d9f"

	planAzureLite      = "8cb22518-aa26-44c5-91a0-e669ec9bf443"
	planConvergedCloud = "03b812ac-c991-4528-b5bd-08b303523a63"
	planFree           = "b1a5764e-2ea1-4f95-94c0-2b4538b37b55"
	planOwnCluster     = "03e3cb66-a4c6-4c6a-b4b0-5d42224debea"
	planPreview        = "5cb3d976-b85c-42ea-a636-79cadda109a9"
)

func options() catalog.Options {
	return catalog.Options{KubernetesVersion: "1.34", OperationTimeout: 24 * time.Hour}
}

type order struct {
	InstanceID, InstanceName, PlatformRegion, User string
	Parameters                                     json.RawMessage
}

func (o order) instance() environment.Instance {
	return environment.Instance{
		ID: o.InstanceID, Name: o.InstanceName, PlatformRegion: o.PlatformRegion,
		Request: environment.Request{User: o.User, Parameters: o.Parameters},
	}
}

type resolved struct {
	Provider, Region, Name string
	Cluster                environment.Cluster
}

func resolve(plan *catalog.Plan, order order) (resolved, error) {
	got, violations := plan.Resolve(order.instance())
	if len(violations) > 0 {
		return resolved{}, violations.Err()
	}

	return resolved{got.Provider, got.Region, got.Name, got.Request.Cluster}, nil
}

var loaded = sync.OnceValues(func() (*catalog.Catalog, error) { return catalog.Load(resources.Catalog(), options()) })

func load(tb testing.TB) *catalog.Catalog {
	tb.Helper()

	read, err := loaded()
	if err != nil {
		tb.Fatal(err)
	}

	return read
}

func plan(tb testing.TB, id string) *catalog.Plan {
	tb.Helper()

	found, err := load(tb).Plan(serviceID, id)
	if err != nil {
		tb.Fatal(err)
	}

	return found
}

// shipped returns the built-in catalog files, with the files in the map added or replaced.
func shipped(tb testing.TB, replaced map[string]string) fs.FS {
	tb.Helper()

	files := fstest.MapFS{}

	err := fs.WalkDir(resources.Catalog(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		content, err := fs.ReadFile(resources.Catalog(), path)
		files[path] = &fstest.MapFile{Data: content}

		return err
	})
	if err != nil {
		tb.Fatal(err)
	}

	for path, content := range replaced {
		files[path] = &fstest.MapFile{Data: []byte(content)}
	}

	return files
}

func file(tb testing.TB, name string) []byte {
	tb.Helper()

	content, err := fs.ReadFile(resources.Catalog(), name)
	if err != nil {
		tb.Fatal(err)
	}

	return content
}
