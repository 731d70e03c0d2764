package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/environment-broker/environment-broker/broker/console/views"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
)

const (
	instancesEndpoint  = "GET /runtimes"
	operationsEndpoint = "GET /operations"
)

// instances shows a page of the instance list. Its URL takes the same parameters as GET /runtimes.
func (c *console) instances(r *http.Request) (result, error) {
	live := c.address(r, "", "")

	query, values, err := c.readQuery(r, instancesEndpoint)

	shown := views.Instances{
		Query: values, States: operator.RuntimeStates(), Plans: c.API.Catalog.Offered(), Now: c.API.Clock.Now(),
	}

	if err == nil {
		var list operatorapi.RuntimeList

		list, err = c.instanceLists.get(r, values.Encode(), c.Live.Position, func() (operatorapi.RuntimeList, error) {
			return c.API.RuntimeList(r.Context(), query)
		})
		shown.List, shown.Pager = list.Data, pager("/console/instances", values, list.Page)
	}

	if shown.Problem, err = problem(err); err != nil {
		return result{}, err
	}

	return result{status: statusOf(shown.Problem), page: views.Page{
		Title: "Instances", Section: "/console/instances", Live: live, Body: views.InstancesPage(shown),
	}}, nil
}

// historyLength is the maximum number of operations on an instance's page. The page links to the list of all operations.
const historyLength = 20

// instance shows an instance with its bindings and its newest operations.
func (c *console) instance(r *http.Request) (result, error) {
	id, err := operatorserver.Segment(r, "instance_id")
	if err != nil {
		return result{}, err
	}

	httpserver.Note(r.Context(), logging.InstanceID, id)

	live := c.address(r, "instance", id)

	runtime, err := c.API.RuntimeDetails(r.Context(), id)
	if err != nil {
		return c.missingInstance(r, id, err)
	}

	bindings, err := c.API.BindingList(r.Context(), id)
	if err != nil {
		return result{}, err
	}

	operations, err := c.API.OperationList(r.Context(), operatorserver.Query{
		Values: url.Values{"instance_id": {id}}, Page: operatorserver.Page{Size: historyLength},
	})
	if err != nil {
		return result{}, err
	}

	explained := explain.Of(runtime.Status.LastOperation, c.API.Clock.Now())

	return result{page: views.Page{
		Title: runtime.Name, Section: "/console/instances", Live: live,
		Body: views.InstancePage(views.Instance{
			Runtime: runtime, Sent: indented(runtime.Parameters), WithDefaults: indented(runtime.Resolved),
			Bindings: bindings.Data, Operations: operations.Data, More: operations.Cursor != "",
			HasBundles: c.Bundles != nil, Left: explained.Left(), Why: runtime.Status.LastOperation.Why, Now: c.API.Clock.Now(),
		}),
	}}, nil
}

// missingInstance shows that an instance does not exist, with a link to its operations if there are any: the broker keeps the operations of
// deleted instances. err is the error of the API; if it has another status than 404, missingInstance returns it.
func (c *console) missingInstance(r *http.Request, id string, err error) (result, error) {
	refusal := httpserver.RefusalOf(err)
	if refusal.Status != http.StatusNotFound || !c.may(r, operationsEndpoint) {
		return result{}, err
	}

	values := url.Values{"instance_id": {id}}

	past, failed := c.API.OperationList(r.Context(), operatorserver.Query{Values: values, Page: operatorserver.Page{Size: 1}})
	if failed != nil || len(past.Data) == 0 {
		return result{}, cmp.Or(failed, err)
	}

	title := http.StatusText(refusal.Status)

	return result{status: refusal.Status, page: views.Page{
		Title: title, Section: "/console/instances",
		Body: views.Message(title, refusal.Description, "/console/operations?"+values.Encode(), "Operations of the instance"),
	}}, nil
}

// indented returns the value as indented JSON, or an empty string if the value is nil.
func indented(value any) string {
	if value == nil {
		return ""
	}

	var text bytes.Buffer

	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the template escapes the text
	encoder.SetIndent("", "  ")

	if err := encoder.Encode(value); err != nil {
		return ""
	}

	return string(bytes.TrimSpace(text.Bytes()))
}
