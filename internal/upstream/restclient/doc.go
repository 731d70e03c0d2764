// Package restclient sends JSON requests to the REST APIs of upstreams and classifies their responses as errors of package
// failure.
//
// Every request of Do has a timeout. Every response has a size limit, and redirects are not followed. A response with status 401
// discards the cached token and repeats the request once with a new one. Errors never quote a response, an address or a credential; only the log
// sees the cause.
package restclient
