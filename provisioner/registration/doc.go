// Package registration keeps the runtimes in Director up to date. It registers a runtime before its order is accepted, reports
// its cluster and its condition, and unregisters it after its deletion.
//
// Director assigns the ID of a runtime and has no idempotency keys. Therefore every attempt at an order uses the same label, and
// a row with that label is stored before the first call. An attempt finds the registration of an earlier attempt by the label. If
// no attempt succeeds, the Caretaker finds the row and removes the registration. This way Director never keeps a runtime that no
// order accounts for.
//
// Registrar serves the API, the stages in stages.go serve operations, and Caretaker runs in the background of every replica. Add
// a new report to Director as a step in stages.go.
package registration
