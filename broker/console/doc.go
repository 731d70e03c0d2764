// Package console serves the console at /console/: pages for operators that are rendered on the server and work without scripts.
//
// The pages show results of the operator API, through the methods of operator.API in the same process. Each page requires the
// same role as the endpoint that it shows, and each action the same role as the endpoint with the same effect. Actions are HTML
// forms that call the same audited methods. Interventions in operations require a reason. The Bundles pages read from the bundle
// provisioner's API server instead, and require the same role as GET /status.
//
// Package views contains the templates, and package assets the style sheet and the scripts. Before a request reaches this package,
// package session has authenticated the client, checked the origin of the request, and set the headers of the response.
//
// To add a page, add a template to views, a handler in a separate file, and a route to routes.
package console
