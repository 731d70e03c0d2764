package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/console/views"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
)

// orderedName is the instance name in the commands.
const orderedName = "my-runtime"

func orderPath(planID string) string { return "/console/catalog/" + url.PathEscape(planID) }

// order shows the commands that order an instance of a plan.
func (c *console) order(r *http.Request) (result, error) {
	id, err := operatorserver.Segment(r, "plan_id")
	if err != nil {
		return result{}, err
	}

	plan, found := c.API.Catalog.ByID(id)
	if !found {
		return result{}, httpserver.Refuse(http.StatusNotFound, "The catalog has no such plan.")
	}

	shown := views.Order{Name: plan.Name, Description: plan.Description, Offered: plan.Offered()}

	if plan.Offered() {
		required := plan.Skeleton()
		if len(required) > 0 {
			shown.Parameters = indented(required)
		}

		if shown.Commands, err = c.orderCommands(r, plan, required); err != nil {
			return result{}, err
		}
	}

	return result{page: views.Page{Title: "Order " + plan.Name, Section: "/console/catalog", Body: views.OrderPage(shown)}}, nil
}

// orderCommands returns commands that order an instance of the plan, one for each tool. required contains the parameters that
// every order must contain.
func (c *console) orderCommands(r *http.Request, plan *catalog.Plan, required map[string]any) ([]views.OrderCommand, error) {
	address, user := c.publicURL(r), "USER"
	if client := auth.FromContext(r.Context()); client.Name != "" && client.Has(auth.RoleOSB) {
		user = client.Name
	}

	order := map[string]any{
		"service_id": c.API.Catalog.ServiceID(), "plan_id": plan.ID, "organization_guid": "my-organization", "space_guid": "my-space",
		"context": map[string]any{"platform": "curl", "instance_name": orderedName},
	}

	var ebctlFlag, cfFlag string

	if len(required) > 0 {
		order["parameters"] = required
		ebctlFlag, cfFlag = " --parameters @parameters.json", " -c parameters.json"
	}

	var body bytes.Buffer

	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")

	if err := encoder.Encode(order); err != nil {
		return nil, fmt.Errorf("encoding the order: %w", err)
	}

	return []views.OrderCommand{
		{
			Tool: "ebctl", Text: "ebctl asks for the password and shows the progress. The user needs the osb role.",
			Command: fmt.Sprintf("ebctl login %s --username %s\nebctl instance create %s --plan %s --wait%s",
				quoted(address), quoted(user), orderedName, quoted(plan.Name), ebctlFlag),
		},
		{
			Tool: "Cloud Foundry", Text: "The broker must be registered in Cloud Foundry.",
			Command: fmt.Sprintf("cf create-service %s %s %s%s", quoted(c.API.Catalog.ServiceName()), quoted(plan.Name), orderedName, cfFlag),
		},
		{
			Tool: "curl", Text: "This is the request that a platform sends. curl asks for the password. Repeating the command does not order a second instance, " +
				"because the command contains the instance ID. Reload this page to get a new ID.",
			Command: fmt.Sprintf("curl -sS -u %s -X PUT -H 'X-Broker-API-Version: 2.17' -H 'Content-Type: application/json' \\\n  %s \\\n  -d %s",
				quoted(user), quoted(address+"/v2/service_instances/"+uuid.NewString()+"?accepts_incomplete=true"), quoted(strings.TrimSpace(body.String()))),
		},
	}, nil
}

// publicURL returns the URL of the broker without a slash at the end: PublicURL or, if that is empty, the host that the client
// requested.
func (c *console) publicURL(r *http.Request) string {
	if c.PublicURL != "" {
		return strings.TrimSuffix(c.PublicURL, "/")
	}

	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}

	return scheme + "://" + r.Host
}

// quoted quotes the string, if necessary, so that a POSIX shell reads it as one word.
func quoted(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@"

	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}

	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
