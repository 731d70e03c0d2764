package operator

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/labels/tenancy"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Options are the dependencies of the handler. NewHandler sets Subjects and Accounts.
type Options struct {
	operatorserver.Options

	Runtimes *runtimes.Store
}

// api implements the Provisioner's routes in openapi.yaml.
type api struct {
	*operatorserver.API

	runtimes *runtimes.Store
}

// NewHandler returns the handler of the operator API. The handler responds with 404 to paths outside of the API.
func NewHandler(options Options) http.Handler {
	options.Subjects, options.Accounts = subjects{options.Runtimes}, accounts{options.Runtimes}
	shared := operatorserver.New(options.Options)

	return shared.NewHandler(operatorserver.ProvisionerRoutes(&api{API: shared, runtimes: options.Runtimes}))
}

// Paths returns the http.ServeMux patterns under which the API is served: the first segments of the paths in openapi.yaml.
func Paths() []string {
	var patterns []string

	for _, route := range operatorserver.ProvisionerRoutes(&api{}) {
		pattern, _, nested := strings.Cut(strings.TrimPrefix(route.Path, "/"), "/")
		if nested {
			pattern += "/"
		}

		patterns = append(patterns, "/"+pattern)
	}

	slices.Sort(patterns)

	return slices.Compact(patterns)
}

// subjects gives package operatorserver access to the runtimes. It implements operatorserver.Subjects.
type subjects struct{ runtimes *runtimes.Store }

// Noun implements operatorserver.Subjects. It returns "runtime".
func (subjects) Noun() string { return "runtime" }

// Kinds returns the kinds as they are stored, not as the GraphQL API shows them.
func (subjects) Kinds() []string { return operation.Kinds() }

// IDs returns the runtime's ID as the instance ID. The binding ID is always empty, because the Provisioner has no bindings.
func (subjects) IDs(record process.Record) (instanceID, bindingID string) {
	return record.InstanceID, ""
}

// Describe returns the names of the runtimes' Shoots.
func (s subjects) Describe(ctx context.Context, ids []string) (map[string]operatorserver.Subject, error) {
	found, err := s.runtimes.Summaries(ctx, ids)
	if err != nil {
		return nil, err
	}

	described := make(map[string]operatorserver.Subject, len(found))
	for id, runtime := range found {
		described[id] = operatorserver.Subject{Name: runtime.ShootName}
	}

	return described, nil
}

// Lock locks the runtime and reports whether it exists. A deleted runtime counts as missing: an operator must not retry its
// operations, because another runtime may now use the name of its Shoot.
func (s subjects) Lock(ctx context.Context, tx storage.Tx, record process.Record, _ time.Time) (bool, error) {
	if err := s.runtimes.Lock(ctx, tx, record.InstanceID); err != nil {
		return false, err
	}

	return s.runtimes.Exists(ctx, tx, record.InstanceID)
}

// Refresh returns the retry unchanged: runtimes change only with an operation, and only the newest operation can be retried.
func (subjects) Refresh(_ context.Context, _ storage.Tx, retry process.New) (process.New, error) {
	return retry, nil
}

// Select restricts the filter to the operations of runtimes that match the query parameters name, account and region.
func (subjects) Select(query url.Values, filter *operations.Filter) error {
	filter.Instances = runtimes.Filter{
		ShootName: query.Get("name"), Tenant: tenancy.Label(query.Get("account")), Region: query.Get("region"),
	}.IDs()

	return nil
}
