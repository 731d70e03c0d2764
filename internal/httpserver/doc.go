// Package httpserver holds what the HTTP APIs of the broker share: endpoints that return an answer or an error, bodies in JSON for all of
// them, and the middlewares that every request passes.
package httpserver
