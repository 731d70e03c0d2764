// Package console serves the console at /console/: pages for operators, rendered on the server, which work without scripts.
//
// The pages show what the operator API returns, through the methods of operator.API in the same process. Each page requires the role of the
// endpoint of the operator API that it shows, and each action that of the endpoint with the same effect. Actions are forms with a reason,
// and pass through the same audited methods.
//
// Packages: views has the templates, assets the style sheet and the scripts. Before a request reaches this package, package session has
// authenticated the client, checked its origin, and set the headers of the response.
//
// To add a page, add a template to views, a handler to a file of its own, and a route to routes.
package console
