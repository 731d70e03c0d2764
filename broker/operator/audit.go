package operator

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// listAudit returns a page of the audit log, newest first. The parameter since is inclusive, until is exclusive.
// The list has no total: a count would read all entries and is of no use to operators.
func (a *api) listAudit(r *http.Request, query query) (httpserver.Response, error) {
	filter := auditlog.Filter{
		InstanceID: query.Get("instance_id"), OrderedBy: query.Get("user"), Action: query.Get("action"),
		Before: query.page.before, BeforeID: query.page.beforeID, Limit: query.page.size + 1,
	}

	for name, moment := range map[string]*time.Time{"since": &filter.Since, "until": &filter.Until} {
		if !query.Has(name) {
			continue
		}

		var err error
		if *moment, err = time.Parse(time.RFC3339, query.Get(name)); err != nil {
			return httpserver.Response{}, invalid(fmt.Sprintf("%s must be a time such as 2030-01-02T15:04:05Z.", name))
		}
	}

	var (
		list operatorapi.AuditList
		err  error
	)

	list.Data, list.Page, err = readList(r.Context(), query.page, filter, a.Entries.List, nil, auditEntry,
		func(shown operatorapi.AuditEntry) (time.Time, string) { return shown.At, shown.ID })

	return httpserver.OK(list), err
}

// getAuditEntry returns one entry of the audit log.
func (a *api) getAuditEntry(r *http.Request) (httpserver.Response, error) {
	id, err := segment(r, "entry_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	found, err := a.Entries.List(r.Context(), auditlog.Filter{ID: id, Limit: 1})

	switch {
	case err != nil:
		return httpserver.Response{}, err
	case id == "" || len(found) == 0:
		return httpserver.Response{}, notFound("The entry does not exist, or was removed after APP_AUDIT_RETENTION.")
	default:
		return httpserver.OK(auditEntry(found[0])), nil
	}
}

// auditEntry converts an entry of the store. For updates, Before and After contain only the changed fields.
func auditEntry(entry auditlog.Entry) operatorapi.AuditEntry {
	return operatorapi.AuditEntry{
		ID: entry.ID, At: entry.At, Action: entry.Action, InstanceID: entry.InstanceID, OperationID: entry.OperationID,
		BindingID: entry.BindingID, Status: entry.Status, Code: entry.Code, Reason: entry.Reason,
		Before: entry.Before, After: entry.After, Missed: entry.Missed,
		By: operatorapi.Actor{
			User: entry.By.User, Means: entry.By.Means, Platform: entry.By.Platform, Originator: entry.By.Originator,
			Address: entry.By.Address, RequestID: entry.By.RequestID,
		},
	}
}

// targetOf returns the action of a request and the IDs of its instance or operation, for the audit entry of a
// rejected request. A GET request changes nothing, so the result is empty.
func targetOf(r *http.Request) audit.Target {
	var target audit.Target

	switch path := r.URL.EscapedPath(); r.Method {
	case http.MethodPost:
		target.Action = path[strings.LastIndex(path, "/")+1:] // the verbs in paths equal the actions in the audit log
	case http.MethodPut:
		target.Action = auditlog.ActionExpire
	default:
		return target
	}

	// Ignore an invalid ID.
	if _, named := mux.Vars(r)["operation_id"]; named {
		target.OperationID, _ = segment(r, "operation_id")
	} else {
		target.InstanceID, _ = segment(r, "instance_id")
	}

	return target
}
