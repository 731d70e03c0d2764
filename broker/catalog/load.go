package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// Options are the settings of the catalog that do not come from its files. Reloads do not change them.
type Options struct {
	// KubernetesVersion is the version of new clusters, such as 1.34 or 1.34.2.
	KubernetesVersion string
	// OperationTimeout is the maximum duration of an operation. The catalog asks platforms to poll for one hour longer.
	OperationTimeout time.Duration
	// EnablePlans lists the plans that are available for new instances. An empty list enables all plans.
	EnablePlans []string
	// OIDC is the default configuration for orders without the oidc parameter. If it is nil, the Provisioner chooses the default.
	OIDC *environment.OIDC
	// KymaVersion is the default version of Kyma. If it is empty, the kyma field of plans is ignored, and only Lifecycle Manager can
	// install Kyma.
	KymaVersion string
	// KymaInstaller is the system that installs Kyma. An empty value means the Provisioner.
	KymaInstaller environment.KymaInstaller
	// KymaVersionOnDemand reports whether orders may choose the version with the kymaVersion parameter.
	KymaVersionOnDemand bool
	// LifecycleManager reports whether Lifecycle Manager installs Kyma. If false, the lifecycleManager field of plans is ignored.
	LifecycleManager bool
	// OnePerAccount lists the plans with a quota of one instance per global account. Plans that the catalog does
	// not have are ignored, so that the same setting can be used with different catalogs.
	OnePerAccount []string
}

// Catalog is the service with its plans. Reload replaces the whole content atomically; plans that were returned earlier do not
// change. A Catalog is safe for concurrent use.
type Catalog struct {
	options Options
	current atomic.Pointer[content]
	// problem describes why the latest files could not be loaded. It is nil if they were loaded.
	problem atomic.Pointer[Problem]
	// required is the check that was passed to Require, or nil if Require was not called.
	required func(plans []*Plan) error
}

// content is a catalog as loaded from the files. It is immutable.
type content struct {
	service   serviceFile
	platforms platformsFile
	plans     []*Plan
	// body is the response to GET /v2/catalog. It is rendered once, because platforms fetch it often. etag is its
	// entity tag, with quotes.
	body []byte
	etag string
	// windows finds the maintenance windows of instances.
	windows fleet.Windows
	// sum is the checksum of the files.
	sum string
}

// Load reads catalog.yaml, platforms.yaml, plans/ and providers/, and checks them as a whole. It reports all errors
// together.
func Load(files fs.FS, options Options) (*Catalog, error) {
	catalog := &Catalog{options: options}

	return catalog, catalog.Reload(files)
}

// Reload reads the files again. If they are invalid, it returns all errors and leaves the catalog unchanged.
func (c *Catalog) Reload(files fs.FS) error {
	read, err := load(files, c.options)
	if err == nil && c.required != nil {
		err = c.required(read.plans)
	}

	if err == nil {
		c.current.Store(read)
	}

	return err
}

// Require runs a check on the current plans, and on the new plans at each later reload. If the check fails, the reload leaves the
// catalog unchanged. Other parts of the service use Require to enforce their own rules. Call Require at most once, before the
// catalog is used.
func (c *Catalog) Require(check func(plans []*Plan) error) error {
	c.required = check

	return check(c.Plans())
}

// load reads, checks and renders the files. It returns either the complete content or an error.
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
		loader.decode("parameters.yaml", parameterFile, &plan.schemas)
		loader.read(path.Join("plans", name+".yaml"), &plan.planFile)
		plan.offered = len(options.EnablePlans) == 0 || slices.Contains(options.EnablePlans, plan.Name)
		plan.onePerAccount = slices.Contains(options.OnePerAccount, plan.Name)
		read.plans = append(read.plans, plan)
	}

	if err := errors.Join(loader.errs...); err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}

	if err := read.check(loader.providers, options); err != nil {
		return nil, fmt.Errorf("checking the catalog: %w", err)
	}

	for _, plan := range read.plans {
		plan.limitKyma(options)

		if err := plan.makeForms(); err != nil {
			return nil, err
		}
	}

	return read, read.render(options)
}

// plan returns the plan with the given ID, or false if there is none.
func (c *content) plan(planID string) (*Plan, bool) {
	for _, plan := range c.plans {
		if plan.ID == planID {
			return plan, true
		}
	}

	return nil, false
}

// Plan returns the plan with the given IDs, even if it is not offered, because its instances can still be updated. If an ID is
// wrong, the error is of kind invalid and names the ID.
func (c *Catalog) Plan(serviceID, planID string) (*Plan, error) {
	current := c.current.Load()

	if serviceID != current.service.ID {
		return nil, failure.New(failure.Invalid, "service_id %q is not in the catalog", serviceID)
	}

	if plan, known := current.plan(planID); known {
		return plan, nil
	}

	return nil, failure.New(failure.Invalid, "plan_id %q is not a plan of service %s", planID, current.service.Name)
}

// ByID returns the plan with the given ID, even if it is not offered, or false if the catalog does not contain it.
func (c *Catalog) ByID(planID string) (*Plan, bool) { return c.current.Load().plan(planID) }

// Window returns the maintenance window of an instance, according to the maintenance policy, the plan and the Shoot. shoot is the
// maintenance window of the instance's Shoot, or zero if it is unknown. If none of the three has a window, the result is zero.
func (c *Catalog) Window(instance fleet.Candidate, planID string, shoot fleet.WindowTimes) (fleet.Window, error) {
	var (
		current = c.current.Load()
		plan    fleet.WindowTimes
	)

	if found, known := current.plan(planID); known {
		plan = found.MaintenanceWindow
	}

	window, err := current.windows.Of(instance, plan, shoot)

	return window, failure.While(err, "finding a maintenance window")
}

// Published is the catalog as platforms see it: the body of the response and its entity tag. Callers must not
// modify the body.
type Published struct {
	Body []byte
	ETag string
}

// Published returns the current catalog as platforms see it.
func (c *Catalog) Published() Published {
	current := c.current.Load()

	return Published{Body: current.body, ETag: current.etag}
}

// Names returns the names and the IDs of all plans, including plans that are not offered.
func (c *Catalog) Names() []string {
	var names []string

	for _, plan := range c.current.Load().plans {
		names = append(names, plan.Name, plan.ID)
	}

	return names
}

// Offered returns the names of the plans that are available for new instances, in the order of the catalog.
func (c *Catalog) Offered() []string {
	names := []string{}

	for _, plan := range c.current.Load().plans {
		if plan.offered {
			names = append(names, plan.Name)
		}
	}

	return names
}

// loader reads the files of the catalog. It collects all errors in errs.
type loader struct {
	files     fs.FS
	providers map[string]providerFile
	errs      []error
}

// read reads and decodes the named YAML file. It adds any error to errs.
func (l *loader) read(name string, into any) {
	content, err := fs.ReadFile(l.files, name)
	if err != nil {
		l.errs = append(l.errs, err)

		return
	}

	l.decode(name, content, into)
}

// decode decodes YAML and adds any error to errs. Unknown fields are errors, so that misspelled names are noticed.
func (l *loader) decode(name string, content []byte, into any) {
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		l.errs = append(l.errs, fmt.Errorf("%s: %w", name, err))
	}
}

// fingerprint returns a checksum of the files, or an empty string if they cannot be read. The checksum covers the
// name and length of each file, so it also changes when text moves from one file to another.
func fingerprint(files fs.FS) string {
	sum := sha256.New()

	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}

		content, err := fs.ReadFile(files, name)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content)

		return err //nolint:wrapcheck // not reported
	})
	if err != nil {
		return ""
	}

	return hex.EncodeToString(sum.Sum(nil))
}

// readProviders reads all files in providers/. Plans refer to a provider by its file name without the extension.
func (l *loader) readProviders() {
	names, err := fs.Glob(l.files, "providers/*.yaml")
	if err != nil || len(names) == 0 {
		l.errs = append(l.errs, errors.Join(errors.New("providers/ has no files"), err))
	}

	for _, name := range names {
		var provider providerFile

		l.read(name, &provider)
		l.providers[strings.TrimSuffix(path.Base(name), ".yaml")] = provider
	}
}
