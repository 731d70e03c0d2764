// Package conformance holds the tests that every tier of the local garden has to pass, so that it makes no difference to the project which of
// them it runs against.
package conformance
