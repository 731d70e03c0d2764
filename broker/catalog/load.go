package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Options is what the catalog needs to know besides its files.
type Options struct {
	// KubernetesVersion is the version of new clusters, such as 1.34 or 1.34.2.
	KubernetesVersion string
	// OperationTimeout is how long an operation may take; platforms are told to poll longer than that.
	OperationTimeout time.Duration
}

// Catalog is the service with its plans. It does not change after it was loaded.
type Catalog struct {
	service serviceFile
	plans   []*Plan
	binding form
	body    []byte
	etag    string
}

// Load reads catalog.yaml, plans/ and providers/, and checks them as a whole: every error is reported at once.
func Load(files fs.FS, options Options) (*Catalog, error) {
	catalog := &Catalog{}
	loader := &loader{files: files, providers: map[string]providerFile{}}

	loader.read("catalog.yaml", &catalog.service)
	loader.readProviders()

	for _, name := range catalog.service.Plans {
		plan := &Plan{providers: loader.providers, kubernetesVersion: options.KubernetesVersion}
		loader.read(path.Join("plans", name+".yaml"), &plan.planFile)
		catalog.plans = append(catalog.plans, plan)
	}

	if err := errors.Join(loader.errs...); err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}

	if err := catalog.check(loader.providers, options); err != nil {
		return nil, fmt.Errorf("checking the catalog: %w", err)
	}

	for _, plan := range catalog.plans {
		if err := plan.makeForms(); err != nil {
			return nil, err
		}
	}

	var err error
	if catalog.binding, err = newForm("bindings", map[string]any{}, []string{}, nil); err != nil {
		return nil, err
	}

	if err := catalog.render(options); err != nil {
		return nil, err
	}

	return catalog, nil
}

// Plan returns a plan of the service, or an error of kind invalid that tells which of the two ids is wrong.
func (c *Catalog) Plan(serviceID, planID string) (*Plan, error) {
	if serviceID != c.service.ID {
		return nil, failure.New(failure.Invalid, "service_id %q is not in the catalog", serviceID)
	}

	for _, plan := range c.plans {
		if plan.ID == planID {
			return plan, nil
		}
	}

	return nil, failure.New(failure.Invalid, "plan_id %q is not a plan of the service %s", planID, c.service.Name)
}

// Body returns the answer to a request for the catalog, and ETag its entity tag.
func (c *Catalog) Body() []byte { return c.body }

// ETag changes with Body, and with nothing else.
func (c *Catalog) ETag() string { return c.etag }

// loader reads files and collects what is wrong with them.
type loader struct {
	files     fs.FS
	providers map[string]providerFile
	errs      []error
}

func (l *loader) read(name string, into any) {
	content, err := fs.ReadFile(l.files, name)
	if err != nil {
		l.errs = append(l.errs, err)

		return
	}

	if err := yaml.UnmarshalStrict(content, into); err != nil {
		l.errs = append(l.errs, fmt.Errorf("%s: %w", name, err))
	}
}

func (l *loader) readProviders() {
	names, err := fs.Glob(l.files, "providers/*.yaml")
	if err != nil || len(names) == 0 {
		l.errs = append(l.errs, errors.Join(errors.New("there is no file in providers/"), err))
	}

	for _, name := range names {
		var provider providerFile

		l.read(name, &provider)
		l.providers[strings.TrimSuffix(path.Base(name), ".yaml")] = provider
	}
}
