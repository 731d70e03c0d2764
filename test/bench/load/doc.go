// Package load sends HTTP requests from a number of clients, each of which waits for the response before its next request.
package load
