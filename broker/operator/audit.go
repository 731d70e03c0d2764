package operator

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// listAudit answers GET /audit.
func (a *api) listAudit(r *http.Request) (httpserver.Answer, error) {
	values, page, err := readQuery(r.URL.RawQuery, "instance_id", "user", "action", "since", "until")
	if err != nil {
		return httpserver.Answer{}, err
	}

	if page.total || page.offset > 0 {
		return httpserver.Answer{}, invalid("The audit trail has neither a total nor numbers of pages. Go on with the cursor.")
	}

	filter := auditlog.Filter{
		InstanceID: values.Get("instance_id"), OrderedBy: values.Get("user"), Action: values.Get("action"),
		Before: page.before, BeforeID: page.beforeID, Limit: page.size + 1,
	}

	for name, moment := range map[string]*time.Time{"since": &filter.Since, "until": &filter.Until} {
		if !values.Has(name) {
			continue
		}

		if *moment, err = time.Parse(time.RFC3339, values.Get(name)); err != nil {
			return httpserver.Answer{}, invalid(fmt.Sprintf("%s has to be a time such as 2030-01-02T15:04:05Z.", name))
		}
	}

	entries, err := a.Entries.List(r.Context(), filter)
	if err != nil {
		return httpserver.Answer{}, err
	}

	entries, shown := pageOf(entries, page.size, func(entry auditlog.Entry) (time.Time, string) { return entry.At, entry.ID })

	list := operatorapi.AuditList{Data: []operatorapi.AuditEntry{}, Page: shown}
	for _, entry := range entries {
		list.Data = append(list.Data, auditEntry(entry))
	}

	return httpserver.OK(list), nil
}

func auditEntry(entry auditlog.Entry) operatorapi.AuditEntry {
	return operatorapi.AuditEntry{
		ID: entry.ID, At: entry.At, Action: entry.Action, InstanceID: entry.InstanceID, OperationID: entry.OperationID,
		BindingID: entry.BindingID, By: operatorapi.Actor(entry.By), Status: entry.Status, Code: entry.Code, Reason: entry.Reason,
		Before: entry.Before, After: entry.After, Missed: entry.Missed,
	}
}

// targetOf tells what a request would change.
func targetOf(r *http.Request) audit.Target {
	var target audit.Target

	switch path := r.URL.EscapedPath(); r.Method {
	case http.MethodPost:
		target.Action = path[strings.LastIndex(path, "/")+1:] // as audit names them
	case http.MethodPut:
		target.Action = auditlog.ActionExpire
	default:
		return target
	}

	// An id that cannot be read is left out.
	if _, named := mux.Vars(r)["operation_id"]; named {
		target.OperationID, _ = segment(r, "operation_id")
	} else {
		target.InstanceID, _ = segment(r, "instance_id")
	}

	return target
}

// recordIntervention writes what an operator did about an operation, inside its transaction.
func (a *api) recordIntervention(ctx context.Context, tx storage.Tx, action string, wanted intervention, former, concerned process.Record) error {
	instanceID, bindingID := worksOn(former)
	entry := auditlog.Entry{
		Action: action, InstanceID: instanceID, BindingID: bindingID, OperationID: former.ID, Status: http.StatusAccepted, Reason: wanted.Reason,
		Before: auditlog.Fields{"kind": former.Kind, "state": former.State},
		After:  auditlog.Fields{"kind": former.Kind, "state": concerned.State},
	}

	if wanted.Step != "" {
		entry.After["step"] = wanted.Step
	}

	if concerned.ID != former.ID {
		entry.After["successorID"] = concerned.ID
	}

	return a.Trail.Record(ctx, tx, entry)
}
