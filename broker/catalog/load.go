package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// Options is what the catalog needs to know besides its files.
type Options struct {
	// KubernetesVersion is the version of new clusters, such as 1.34 or 1.34.2.
	KubernetesVersion string
	// OperationTimeout is how long an operation may take; platforms are told to poll longer than that.
	OperationTimeout time.Duration
	// EnablePlans names the plans that new instances may be ordered of; without any, they are all.
	EnablePlans []string
	// OIDC is how people log in to clusters whose order does not say. Nil leaves it to the Provisioner.
	OIDC *environment.OIDC
	// OnePerAccount names the plans of which a global account may have one instance. The catalog need not have them.
	OnePerAccount []string
}

// Catalog is the service with its plans. Reload exchanges all of it at once; a Plan that somebody has goes on as it is.
type Catalog struct {
	options Options
	current atomic.Pointer[content]
	problem atomic.Pointer[Problem]
	dated   atomic.Pointer[dated]
}

// content is what the files say. It does not change.
type content struct {
	service   serviceFile
	platforms platformsFile
	plans     []*Plan
	body      []byte
	etag      string
	// print tells the files apart from others.
	sum string
}

// Load reads catalog.yaml, platforms.yaml, plans/ and providers/, and checks them as a whole: every error is reported at once.
func Load(files fs.FS, options Options) (*Catalog, error) {
	catalog := &Catalog{options: options}

	return catalog, catalog.Reload(files)
}

// Reload reads the files anew. When anything in them is wrong, the catalog stays as it was.
func (c *Catalog) Reload(files fs.FS) error {
	read, err := load(files, c.options)
	if err == nil {
		c.current.Store(read)
	}

	return err
}

func load(files fs.FS, options Options) (*content, error) {
	loader := &loader{files: files, providers: map[string]providerFile{}}
	read := &content{sum: fingerprint(files)}

	loader.read("catalog.yaml", &read.service)
	loader.read("platforms.yaml", &read.platforms)
	loader.readProviders()

	for _, name := range read.service.Plans {
		plan := &Plan{
			providers: loader.providers, platforms: read.platforms, reserved: read.service.ReservedNetworks,
			kubernetesVersion: options.KubernetesVersion, oidc: options.OIDC,
		}
		loader.read(path.Join("plans", name+".yaml"), &plan.planFile)
		plan.offered = len(options.EnablePlans) == 0 || contains(options.EnablePlans, plan.Name)
		plan.onePerAccount = contains(options.OnePerAccount, plan.Name)
		read.plans = append(read.plans, plan)
	}

	if err := errors.Join(loader.errs...); err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}

	if err := read.check(loader.providers, options); err != nil {
		return nil, fmt.Errorf("checking the catalog: %w", err)
	}

	for _, plan := range read.plans {
		if err := plan.makeForms(); err != nil {
			return nil, err
		}
	}

	return read, read.render(options)
}

// Plan returns a plan of the service, or an error of kind invalid that tells which of the two ids is wrong.
func (c *Catalog) Plan(serviceID, planID string) (*Plan, error) {
	current := c.current.Load()

	if serviceID != current.service.ID {
		return nil, failure.New(failure.Invalid, "service_id %q is not in the catalog", serviceID)
	}

	for _, plan := range current.plans {
		if plan.ID == planID {
			return plan, nil
		}
	}

	return nil, failure.New(failure.Invalid, "plan_id %q is not a plan of the service %s", planID, current.service.Name)
}

// Published is the answer to a request for the catalog.
type Published struct {
	Body []byte
	// ETag changes with the body, and with nothing else.
	ETag string
	// Changed is since when it is this one, zero while that is not known.
	Changed time.Time
}

// Published returns the answer to a request for the catalog.
func (c *Catalog) Published() Published {
	current := c.current.Load()
	published := Published{Body: current.body, ETag: current.etag}

	if dated := c.dated.Load(); dated != nil && dated.etag == current.etag {
		published.Changed = dated.since
	}

	return published
}

// dated tells since when platforms are offered what has the entity tag.
type dated struct {
	etag  string
	since time.Time
}

// Offered lists the names of the plans that new instances may be ordered of, in their order.
func (c *Catalog) Offered() []string {
	names := []string{}

	for _, plan := range c.current.Load().plans {
		if plan.offered {
			names = append(names, plan.Name)
		}
	}

	return names
}

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

// fingerprint tells files apart from others. Of files that cannot be read nothing is known.
func fingerprint(files fs.FS) string {
	sum := sha256.New()

	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}

		content, err := fs.ReadFile(files, name)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content)

		return err //nolint:wrapcheck // it is not told
	})
	if err != nil {
		return ""
	}

	return hex.EncodeToString(sum.Sum(nil))
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
