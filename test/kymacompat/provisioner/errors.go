package provisioner

import (
	"errors"
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Fault selects how a call fails. The zero value means that the call succeeds.
type Fault int

// Faults that [Provisioner.Fail] can inject.
const (
	none Fault = iota
	// ResponseLost executes the call and closes the connection without a response, so the broker cannot know the outcome.
	ResponseLost
	// Unavailable responds with 503 without executing the call, like a proxy in front of the Provisioner.
	Unavailable
	// TenantRejected responds with a permanent error, without executing the call.
	TenantRejected
)

// Fail makes the next requests for a GraphQL field fail. Each fault applies to one request. Faults from earlier calls to Fail are
// used first.
func (p *Provisioner) Fail(field string, faults ...Fault) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	p.faults[field] = append(p.faults[field], faults...)
}

// fault removes and returns the next fault for the given field. It returns the zero value if there is none.
func (p *Provisioner) fault(field string) Fault {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	left := p.faults[field]
	if len(left) == 0 {
		return none
	}

	p.faults[field] = left[1:]

	return left[0]
}

// problem is an error as the Kyma Provisioner reports it. Its code is an HTTP status or a code of the Kyma Provisioner's
// database layer.
type problem struct {
	message, reason, component string
	code                       int
}

func (p *problem) Error() string { return p.message }

// badRequest returns a permanent error: the broker does not retry codes from 400 to 499.
func badRequest(format string, args ...any) error {
	return &problem{fmt.Sprintf(format, args...), "err_provisioner_internal", "provisioner", 400}
}

// notFound returns the error for an unknown ID. Its code comes from the database layer and is not 404.
func notFound(format string, args ...any) error {
	return &problem{fmt.Sprintf(format, args...), "err_db_not_found", "db - provisioner", 2}
}

// nameTaken returns Gardener's error for a duplicate cluster name, which the Kyma Provisioner passes on.
func nameTaken(name string) error {
	return &problem{fmt.Sprintf(`shoots.core.gardener.cloud "%s" already exists`, name), "AlreadyExists", "k8s client - gardener", 500}
}

// checkTenant returns an error if the runtime belongs to another tenant.
func checkTenant(caller caller, runtime *runtime) error {
	if caller.tenant != runtime.Tenant {
		return badRequest("provided tenant does not match tenant used to provision cluster")
	}

	return nil
}

// toGraphQL converts an error from resolving a field. Any error other than a problem becomes an internal error.
func toGraphQL(field *ast.Field, err error) *gqlerror.Error {
	known, ok := errors.AsType[*problem](err)
	if !ok {
		known = &problem{err.Error(), "err_provisioner_internal", "provisioner", 500}
	}

	return &gqlerror.Error{
		Message: known.message, Path: ast.Path{ast.PathName(field.Alias)},
		Extensions: map[string]any{"error_code": known.code, "error_reason": known.reason, "error_component": known.component},
	}
}
