package catalog_test

import (
	"encoding/json"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/resources"
)

// FuzzParameters resolves arbitrary text as the parameters of an order, an update and a binding. Errors must be at
// most 32 KiB long, and the number of allocations at most proportional to the length of the text.
func FuzzParameters(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `{"region":"eu-west-1","autoScalerMin":4}`, `{"administrators":[1e999000,1e999000]}`, `{"zones":["a","a"]}`,
		`{"oidc":{"list":[{"clientID":"a","issuerURL":"https://a"}]}}`, `{"networking":{"nodes":"10.250.0.0/16"}}`, `{"administrators":[0,0,0,0]}`,
		`{"kubeconfig":"YQ=="}`, `{"name":"a","name":"b"}`, `{"role":"edit","expiration_seconds":600}`, `{"expiration_seconds":1e300}`,
	} {
		f.Add([]byte(seed))
	}

	plans := []*catalog.Plan{plan(f, planAWS), plan(f, planOwnCluster)}

	f.Fuzz(func(t *testing.T, text []byte) {
		parameters := json.RawMessage(text)

		check := func() {
			for _, plan := range plans {
				resolved, violations := plan.Resolve(environment.Instance{ID: "id", Request: environment.Request{Parameters: parameters}})
				if encoded, err := json.Marshal(violations); err != nil || len(encoded) > 32<<10 {
					t.Errorf("the violations have %d bytes, %v", len(encoded), err)
				}

				_, err := plan.Update(resolved, parameters)
				if err != nil && len(err.Error()) > 32<<10 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
			}

			if _, err := catalog.ResolveBinding(parameters); err != nil && len(err.Error()) > 32<<10 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		}

		// An order of 100 bytes needs about 2,000 allocations.
		if allocations := testing.AllocsPerRun(1, check); allocations > float64(10_000+100*len(text)) {
			t.Errorf("%v allocations for %d bytes", allocations, len(text))
		}
	})
}

// FuzzCatalogFile loads the catalog with an arbitrary plan file. Loading must return either a complete catalog or an
// error.
func FuzzCatalogFile(f *testing.F) {
	content, err := fs.ReadFile(resources.Catalog(), "plans/aws.yaml")
	if err != nil {
		f.Fatal(err)
	}

	f.Add(content)
	f.Add([]byte("a: &a [*a, *a]"))
	f.Add([]byte("nodes: {min: 1e999000}"))
	f.Add([]byte(""))

	f.Fuzz(func(t *testing.T, text []byte) {
		files := fstest.MapFS{}

		err := fs.WalkDir(resources.Catalog(), ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}

			data, err := fs.ReadFile(resources.Catalog(), name)
			files[name] = &fstest.MapFile{Data: data}

			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		files["plans/aws.yaml"] = &fstest.MapFile{Data: text}

		loaded, err := catalog.Load(files, options())
		if err == nil && len(loaded.Published().Body) == 0 {
			t.Error("the catalog was loaded without a body")
		}
	})
}
