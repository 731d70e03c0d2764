package brokertest

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func (b *Broker) listRuntimes(w http.ResponseWriter, r *http.Request) {
	if !knows(w, r.URL.Query(), "instance_id", "account", "subaccount", "region", "plan", "state") {
		return
	}

	var chosen []operatorapi.Runtime

	for _, runtime := range b.runtimes {
		if matches(r.URL.Query(), map[string]string{
			"instance_id": runtime.InstanceID, "account": runtime.GlobalAccountID, "subaccount": runtime.SubAccountID,
			"region": runtime.Region, "plan": runtime.ServicePlanName, "state": string(runtime.Status.State),
		}) {
			chosen = append(chosen, runtime)
		}
	}

	data, page := paged(chosen, r.URL.Query(), b.scenario.PageSize)
	answer(w, http.StatusOK, operatorapi.RuntimeList{Data: data, Page: page})
}

func (b *Broker) listOperations(w http.ResponseWriter, r *http.Request) {
	if !knows(w, r.URL.Query(), "instance_id", "kind", "state") {
		return
	}

	var chosen []operatorapi.Operation

	for _, id := range b.order {
		operation := b.operations[id].present().operation
		operation.Timeline, operation.Why, operation.Attempt = nil, "", 0

		if matches(r.URL.Query(), map[string]string{
			"instance_id": operation.InstanceID, "kind": operation.Kind, "state": operation.State,
		}) {
			chosen = append(chosen, operation)
		}
	}

	data, page := paged(chosen, r.URL.Query(), b.scenario.PageSize)
	answer(w, http.StatusOK, operatorapi.OperationList{Data: data, Page: page})
}

func (b *Broker) listAudit(w http.ResponseWriter, r *http.Request) {
	if !knows(w, r.URL.Query(), "instance_id", "user", "action", "since", "until") {
		return
	}

	var chosen []operatorapi.AuditEntry

	for _, entry := range b.scenario.Audit {
		if matches(r.URL.Query(), map[string]string{
			"instance_id": entry.InstanceID, "user": cmp.Or(entry.By.Originator, entry.By.User), "action": entry.Action,
		}) {
			chosen = append(chosen, entry)
		}
	}

	data, page := paged(chosen, r.URL.Query(), b.scenario.PageSize)
	answer(w, http.StatusOK, operatorapi.AuditList{Data: data, Page: page})
}

func (b *Broker) operation(w http.ResponseWriter, r *http.Request) {
	script, found := b.operations[r.PathValue("id")]
	if !found {
		refuse(w, http.StatusNotFound, "NotFound", "there is no operation "+r.PathValue("id"))

		return
	}

	present := script.present()
	script.asked++

	if present.fault != nil {
		present.fault.answer(w)

		return
	}

	answer(w, http.StatusOK, present.operation)
}

func (b *Broker) adminKubeconfig(w http.ResponseWriter, r *http.Request) {
	if b.find(r.PathValue("id")) < 0 {
		refuse(w, http.StatusNotFound, "NotFound", "there is no instance "+r.PathValue("id"))

		return
	}

	answer(w, http.StatusOK, b.scenario.Kubeconfig)
}

// knows refuses a query with parameters that a list does not have.
func knows(w http.ResponseWriter, query url.Values, filters ...string) bool {
	for name := range query {
		if name != "cursor" && name != "total" && !slices.Contains(filters, name) {
			refuse(w, http.StatusBadRequest, "BadRequest", "The parameter "+name+" is not known.")

			return false
		}
	}

	return true
}

// matches reports whether the fields have the values that the query asks for.
func matches(query url.Values, fields map[string]string) bool {
	for name, value := range fields {
		if wanted := query.Get(name); wanted != "" && wanted != value {
			return false
		}
	}

	return true
}

// paged returns the page that begins at the cursor, with the total if that is asked for.
func paged[T any](entries []T, query url.Values, size int) ([]T, operatorapi.Page) {
	begin, _ := strconv.Atoi(query.Get("cursor"))
	begin = min(begin, len(entries))
	end := len(entries)

	var cursor string

	if size > 0 && begin+size < end {
		end = begin + size
		cursor = strconv.Itoa(end)
	}

	page := operatorapi.Page{Count: end - begin, Cursor: cursor}

	if total := len(entries); query.Get("total") == "true" {
		page.TotalCount = &total
	}

	return append([]T{}, entries[begin:end]...), page
}
