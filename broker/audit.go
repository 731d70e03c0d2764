package broker

import (
	"context"
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// ordered keeps with a new operation who orders it, and what it changes: there is nothing before a creation and nothing after a deletion.
// That is the operation's entry in the audit trail.
func ordered(ctx context.Context, operation process.New, before, after *environment.Instance) (process.New, error) {
	entry := auditlog.Entry{By: audit.ActorOf(ctx)}

	if before != nil {
		entry.Before = before.Shown()
	}

	if after != nil {
		entry.After = after.Shown()
	}

	if before != nil && after != nil {
		entry.Before, entry.After = auditlog.Difference(entry.Before, entry.After)
	}

	var err error

	operation.OrderedBy, operation.Trace = entry.By.Name(), tracing.Carry(ctx)
	operation.Audit, err = entry.Encode()

	return operation, err
}

// targetOf tells what a request would change, by its path alone: it may not have been let in.
func targetOf(r *http.Request) audit.Target {
	_, path, found := strings.Cut(r.URL.EscapedPath(), "/v2/service_instances/")
	if !found {
		return audit.Target{}
	}

	segments := strings.Split(path, "/")
	target := audit.Target{InstanceID: idIn(segments[0])}

	switch {
	case len(segments) == 1:
		target.Action = map[string]string{
			http.MethodPut: environment.KindProvision, http.MethodPatch: auditlog.ActionUpdate, http.MethodDelete: environment.KindDeprovision,
		}[r.Method]
	case len(segments) == 3 && segments[1] == "service_bindings":
		target.Action = map[string]string{http.MethodPut: auditlog.ActionBind, http.MethodDelete: auditlog.ActionUnbind}[r.Method]
		target.BindingID = idIn(segments[2])
	}

	return target
}

// idIn returns the id of a segment, or nothing where it is none.
func idIn(segment string) string {
	id, fine := decoded(segment)
	if !fine {
		return ""
	}

	return id
}
