package console

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/gorilla/mux"

	"github.com/environment-broker/environment-broker/broker/console/views"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/program"
)

// Options are the dependencies of the console.
type Options struct {
	// API is the operator API, whose methods the console calls.
	API *operator.API
	// Live contains the dependencies of live updates. If Live.Position is nil, there are no live updates.
	Live Live
	// Bundles reads the bundle provisioner's objects. Nil means that the console has no Bundles pages.
	Bundles Bundles
	// PublicURL is the URL of the broker for clients. If it is empty, commands on pages contain the host of the request.
	PublicURL string
	// CanLogOut reports whether the client of the context can log out. Nil means that no client can.
	CanLogOut func(ctx context.Context) bool
}

// console serves the pages.
type console struct {
	Options

	version string
	viewers viewers
	numbers cached[views.Overview]
	pool    cached[[]views.PoolType]
	// instanceLists and operationLists share results among pages that refresh themselves.
	instanceLists  shared[operatorapi.RuntimeList]
	operationLists shared[operatorapi.OperationList]
	// verifying is locked during a verification of the audit log.
	verifying sync.Mutex
}

// route is a page or an action of the console.
type route struct {
	method, path string
	// like is an endpoint of the operator API, such as "GET /runtimes". The route requires the same role.
	like  string
	serve func(r *http.Request) (result, error)
}

// result is the response to a request: a page, a redirect or a stream.
type result struct {
	// status is the HTTP status; 0 means 200.
	status int
	page   views.Page
	// location, if not empty, is the target of a redirect with status 303.
	location string
	// stream, if not nil, writes the whole response.
	stream func(w http.ResponseWriter)
}

// New returns the handler for all paths below /console/. The context of each request must contain the identity of the client.
func New(options Options) http.Handler {
	c := &console{Options: options, version: program.ReadBuild().Version}

	router := mux.NewRouter().UseEncodedPath().SkipClean(true)
	router.NotFoundHandler = c.handler(func(*http.Request) (result, error) {
		return result{}, httpserver.Refuse(http.StatusNotFound, textNoPage)
	})
	router.Use(httpserver.Trace)

	paths := map[string]httpserver.Methods{}

	for _, each := range c.routes() {
		if paths[each.path] == nil {
			paths[each.path] = httpserver.Methods{}
			router.Handle(each.path, paths[each.path])
		}

		paths[each.path][each.method] = c.handler(c.guarded(each))
	}

	return router
}

const textNoPage = "This page does not exist."

func (c *console) routes() []route {
	routes := []route{
		{http.MethodGet, "/console", instancesEndpoint, redirect("/console/")},
		{http.MethodGet, "/console/", instancesEndpoint, c.overview},
		{http.MethodGet, "/console/live", "GET /events", c.live},
		{http.MethodGet, "/console/instances", instancesEndpoint, c.instances},
		{http.MethodGet, "/console/instances/{instance_id}", "GET /runtimes/{instance_id}", c.instance},
		{http.MethodGet, "/console/operations", operationsEndpoint, c.operations},
		{http.MethodGet, "/console/operations/{operation_id}", "GET /operations/{operation_id}", c.operation},
		{http.MethodPost, "/console/operations/{operation_id}/cancel", cancelEndpoint, c.cancel},
		{http.MethodPost, "/console/operations/{operation_id}/retry", retryEndpoint, c.retry},
		{http.MethodPost, "/console/operations/{operation_id}/skip", skipEndpoint, c.skip},
		{http.MethodGet, "/console/orchestrations", orchestrationsEndpoint, c.orchestrations},
		{http.MethodGet, "/console/orchestrations/{orchestration_id}", orchestrationEndpoint, c.orchestration},
		{http.MethodPost, "/console/orchestrations/{orchestration_id}/apply", applyEndpoint, c.apply},
		{http.MethodPost, "/console/orchestrations/{orchestration_id}/retry", retryTargetsEndpoint, c.retryTargets},
		{http.MethodPost, "/console/orchestrations/{orchestration_id}/pause", pauseEndpoint, c.pause},
		{http.MethodPost, "/console/orchestrations/{orchestration_id}/resume", resumeEndpoint, c.resume},
		{http.MethodPost, "/console/orchestrations/{orchestration_id}/cancel", stopEndpoint, c.stop},
		{http.MethodGet, "/console/catalog", "GET /catalog", c.catalog},
		{http.MethodGet, "/console/catalog/{plan_id}", "GET /catalog", c.order},
		{http.MethodGet, "/console/systems", "GET /status", c.systems},
		{http.MethodGet, "/console/audit", auditEndpoint, c.audit},
		{http.MethodGet, "/console/audit/verification", "GET /auditchain", c.verification},
	}

	if c.Bundles != nil {
		routes = append(routes,
			route{http.MethodGet, bundlesPath, "GET /status", c.bundles},
			route{http.MethodGet, bundlesPath + "/{name}", "GET /status", c.bundle})
	}

	return routes
}

// sections returns the entries of the navigation, each with the endpoint whose role it requires.
func (c *console) sections() []struct{ name, path, like string } {
	type section = struct{ name, path, like string }

	found := []section{
		{"Overview", "/console/", instancesEndpoint},
		{"Instances", "/console/instances", instancesEndpoint},
		{"Operations", "/console/operations", operationsEndpoint},
		{"Orchestrations", "/console/orchestrations", orchestrationsEndpoint},
		{"Catalog", "/console/catalog", "GET /catalog"},
		{"Systems", "/console/systems", "GET /status"},
		{"Audit log", "/console/audit", auditEndpoint},
	}

	if c.Bundles != nil {
		catalog := slices.IndexFunc(found, func(each section) bool { return each.name == "Catalog" })
		found = slices.Insert(found, catalog, section{"Bundles", bundlesPath, "GET /status"})
	}

	return found
}

func redirect(to string) func(*http.Request) (result, error) {
	return func(*http.Request) (result, error) { return result{location: to}, nil }
}

// role returns the role that an endpoint of the operator API requires.
func (c *console) role(like string) auth.Role { return auth.Role(c.API.Route(like).Role) }

// may reports whether the client of a request has the role that an endpoint requires.
func (c *console) may(r *http.Request, like string) bool {
	return auth.FromContext(r.Context()).Has(c.role(like))
}

// guarded returns the handler of a route. It responds with 403 to clients that lack the role of the route.
func (c *console) guarded(route route) func(*http.Request) (result, error) {
	role := c.role(route.like)

	return func(r *http.Request) (result, error) {
		if !auth.FromContext(r.Context()).Has(role) {
			return result{}, httpserver.Refuse(http.StatusForbidden, "The user lacks the "+string(role)+" role.")
		}

		return route.serve(r)
	}
}

// handler returns an HTTP handler that writes the result of serve. If serve fails, it writes an error page.
func (c *console) handler(serve func(*http.Request) (result, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(liveHeader) != "" {
			httpserver.NotePoll(r.Context())
		}

		response, err := serve(r)
		if err != nil {
			refusal := httpserver.RefusalOf(err)
			httpserver.NoteCause(r.Context(), refusal)
			response = result{status: refusal.Status, page: views.Page{
				Title: http.StatusText(refusal.Status),
				Body:  views.Message(http.StatusText(refusal.Status), refusal.Description, "/console/", "Back to the overview"),
			}}
		}

		if response.stream != nil {
			response.stream(w)

			return
		}

		if response.location != "" {
			http.Redirect(w, r, response.location, http.StatusSeeOther)

			return
		}

		if response.status == 0 {
			response.status = http.StatusOK
		}

		response.page.Shell = c.shell(r)
		views.Render(w, r, response.status, response.page)
	})
}

// liveHeader marks requests that a page sends to refresh itself.
const liveHeader = "X-Console-Live"

// shell returns the data for the page frame, with the navigation entries that the client may use.
func (c *console) shell(r *http.Request) views.Shell {
	shell := views.Shell{
		User: auth.FromContext(r.Context()).Name, Theme: views.Theme(r), Version: c.version,
		CanLogOut: c.CanLogOut != nil && c.CanLogOut(r.Context()),
	}

	for _, each := range c.sections() {
		if c.may(r, each.like) {
			shell.Sections = append(shell.Sections, views.Section{Name: each.name, Path: each.path})
		}
	}

	return shell
}

// textOf returns the error message that the client may see, shortened to maxText.
func textOf(err error) string { return failure.Shorten(httpserver.RefusalOf(err).Description, maxText) }

// maxText is the maximum length of an error message on a page, in characters.
const maxText = 500
