// Package registration maintains the entries for runtimes in Director. It registers a runtime before its order is accepted,
// reports its cluster and its condition, and unregisters it after its deletion.
//
// Director assigns the ID of a runtime and does not support idempotency keys. Therefore all attempts at an order use the same
// label, and a row with that label is stored before the first call. An attempt finds the registration of an earlier attempt by
// the label. If no attempt succeeds, the Caretaker finds the row and removes the registration. As a result, no runtime without
// an order stays in Director.
//
// Registrar serves the API, the stages in stages.go serve operations, and Caretaker runs in the background of every replica. Add
// a new report to Director as a step in stages.go.
package registration
