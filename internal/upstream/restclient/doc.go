// Package restclient sends JSON requests to the REST APIs of upstreams and classifies their responses as errors of package
// failure.
//
// Every request of Do has a timeout. Every response has a size limit, and redirects are not followed. After a response with
// status 401, Do discards the cached token and repeats the request once with a new one. Errors never quote a response, an address
// or a credential; the cause appears only in the log.
package restclient
