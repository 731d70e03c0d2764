// Package httpserver runs the HTTP APIs of the services: servers with timeouts and graceful shutdown, health and metrics, endpoints that
// return a response or an error, and the middlewares of every request.
//
// Every error response has the JSON body of the Open Service Broker API. Internal errors never reach a client: RefusalOf replaces their text,
// and the log has it. A request in progress when the server stops is completed; long polls learn of the stop from Draining.
package httpserver
