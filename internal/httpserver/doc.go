// Package httpserver runs the HTTP APIs of the services: servers with timeouts and graceful shutdown, health and metrics,
// endpoints that return a response or an error, and common middlewares.
//
// Every error response of an endpoint has the JSON body of the Open Service Broker API. The text of an internal error is logged and never sent
// to a client. A stopping server completes the requests in progress; long polls use Draining to end early.
//
// To add an endpoint, write an Endpoint function and wrap it in the middlewares of its service. To add a kind of error, add a
// case to RefusalOf. The file observe.go defines the log line and the metrics of every request.
package httpserver
