package provisioner

import (
	"errors"
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Fault is how a call goes wrong.
type Fault int

// The faults.
const (
	none Fault = iota
	// AnswerLost has the call done and its answer lost.
	AnswerLost
	// Unavailable has something before the Provisioner answer with 503.
	Unavailable
	// TenantRefused has the tenant refused.
	TenantRefused
)

// Fail has the next calls of the field go wrong, one for each fault.
func (p *Provisioner) Fail(field string, faults ...Fault) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	p.faults[field] = append(p.faults[field], faults...)
}

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

// problem is an error as the Kyma Provisioner reports it: codes like those of HTTP, or of its database.
type problem struct {
	message, reason, component string
	code                       int
}

func (p *problem) Error() string { return p.message }

func badRequest(format string, args ...any) error {
	return &problem{fmt.Sprintf(format, args...), "err_provisioner_internal", "provisioner", 400}
}

func notFound(format string, args ...any) error {
	return &problem{fmt.Sprintf(format, args...), "err_db_not_found", "db - provisioner", 2}
}

// taken is how Gardener says that there is a cluster of the name.
func taken(name string) error {
	return &problem{fmt.Sprintf(`shoots.core.gardener.cloud "%s" already exists`, name), "AlreadyExists", "k8s client - gardener", 500}
}

// mine refuses runtimes of other tenants.
func mine(caller caller, runtime *runtime) error {
	if caller.tenant != runtime.Tenant {
		return badRequest("provided tenant does not match tenant used to provision cluster")
	}

	return nil
}

func presented(field *ast.Field, err error) *gqlerror.Error {
	known, told := errors.AsType[*problem](err)
	if !told {
		known = &problem{err.Error(), "err_provisioner_internal", "provisioner", 500}
	}

	return &gqlerror.Error{
		Message: known.message, Path: ast.Path{ast.PathName(field.Alias)},
		Extensions: map[string]any{"error_code": known.code, "error_reason": known.reason, "error_component": known.component},
	}
}
