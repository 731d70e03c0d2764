// Package httpserver runs the HTTP APIs of the services: servers with timeouts and graceful shutdown, health and metrics, endpoints that
// return a response or an error, and the middlewares of every request.
//
// Every error response has the JSON body of the Open Service Broker API. The text of an internal error goes to the log and never to a client.
// A server that stops completes the requests in progress; long polls use Draining to end early.
//
// A new endpoint is an Endpoint function behind the middlewares of its service. A new kind of error is a case of RefusalOf. What
// every request logs and counts is in observe.go.
package httpserver
