// Package resources carries the files that the services ship with.
package resources
