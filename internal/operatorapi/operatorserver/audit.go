package operatorserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// ListAudit handles GET /audit.
func (a *API) ListAudit(r *http.Request, query Query) (httpserver.Response, error) {
	list, err := a.AuditList(r.Context(), query)

	return httpserver.OK(list), err
}

// AuditList returns a page of the audit log, newest first. The since parameter is inclusive, and until is exclusive. The list has
// no total: a count would read all entries and is of no use to operators.
func (a *API) AuditList(ctx context.Context, query Query) (operatorapi.AuditList, error) {
	filter := auditlog.Filter{
		InstanceID: query.Get("instance_id"), OrderedBy: query.Get("user"), Action: query.Get("action"),
		Before: query.Page.Before, BeforeID: query.Page.BeforeID, Limit: query.Page.Size + 1,
	}

	var (
		list operatorapi.AuditList
		err  error
	)

	if filter.Since, filter.Until, err = period(query.Values); err != nil {
		return list, err
	}

	list.Data, list.Page, err = ReadList(ctx, query.Page, filter, a.Entries.List, nil, auditEntry,
		func(shown operatorapi.AuditEntry) (time.Time, string) { return shown.At, shown.ID })

	return list, err
}

// GetAuditEntry handles GET /audit/{entry_id}.
func (a *API) GetAuditEntry(r *http.Request) (httpserver.Response, error) {
	id, err := Segment(r, "entry_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	found, err := a.Entries.List(r.Context(), auditlog.Filter{ID: id, Limit: 1})

	switch {
	case err != nil:
		return httpserver.Response{}, err
	case id == "" || len(found) == 0:
		return httpserver.Response{}, NotFound("The entry does not exist, or was removed because its retention period (APP_AUDIT_RETENTION) has ended.")
	default:
		return httpserver.OK(auditEntry(found[0])), nil
	}
}

// chainPage is the maximum number of records in a page of the audit log's hash chain.
const chainPage = 200

// GetAuditChain handles GET /auditchain.
func (a *API) GetAuditChain(r *http.Request, query Query) (httpserver.Response, error) {
	page, err := a.Entries.ChainPage(r.Context(), query.Get("position"), chainPage)
	if errors.Is(err, auditlog.ErrChainCursor) {
		return httpserver.Response{}, Invalid("position is invalid. Use the value of the \"next\" field in the previous page.")
	}

	return httpserver.OK(operatorapi.AuditChainPage{Records: page.Records, Unchained: page.Unchained, Head: page.Head, Next: page.Next}), err
}

// auditEntry converts a stored entry to its form in the API. For updates, Before and After contain only the changed fields.
func auditEntry(entry auditlog.Entry) operatorapi.AuditEntry {
	return operatorapi.AuditEntry{
		ID: entry.ID, At: entry.At, Action: entry.Action, InstanceID: entry.InstanceID, OperationID: entry.OperationID,
		AccountID: entry.Account, ErasedBy: entry.ErasedBy,
		BindingID: entry.BindingID, Status: entry.Status, Code: entry.Code, Reason: entry.Reason,
		Before: entry.Before, After: entry.After, Missed: entry.Missed,
		By: operatorapi.Actor{
			User: entry.By.User, Means: entry.By.Means, Platform: entry.By.Platform, Originator: entry.By.Originator,
			Address: entry.By.Address, RequestID: entry.By.RequestID,
		},
	}
}

// targetOf returns the action of a request and the ID of its instance, operation or account, for the audit entry of a
// rejected request. A GET request changes nothing, so the result is empty.
func targetOf(r *http.Request) audit.Target {
	var target audit.Target

	switch path := r.URL.EscapedPath(); {
	case r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodDelete:
		return target
	case path == "/webhooks" || strings.HasPrefix(path, "/webhooks/"):
		target.Action = auditlog.ActionWebhook
	case strings.HasPrefix(path, "/expire/"):
		target.Action = auditlog.ActionExpire
	case strings.HasPrefix(path, "/upgrade/") && !strings.HasSuffix(path, "/plan"):
		target.Action = auditlog.ActionOrchestrate
	default:
		target.Action = path[strings.LastIndex(path, "/")+1:] // the verbs in paths equal the actions in the audit log
	}

	// Ignore an invalid ID. A path has only one of the IDs.
	target.OperationID, _ = Segment(r, "operation_id")
	target.InstanceID, _ = Segment(r, "instance_id")
	target.Account, _ = Segment(r, "account_id")

	for _, name := range []string{"leftover_id", "orchestration_id", "webhook_id"} {
		if id, _ := Segment(r, name); id != "" {
			target.OperationID = id
		}
	}

	return target
}
