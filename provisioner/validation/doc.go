// Package validation validates orders, adoptions and upgrades before they are accepted, and merges upgrades into existing
// orders. It neither calls an upstream nor reads a database.
//
// Gardener accepts a valid order, unless it depends on data that only the cloud profile or the project contains: the offered
// versions, the machine types, or the CredentialsBindings. Such an order fails when the Shoot is created.
//
// An error lists up to ten problems with the paths of their fields in the request; clients show the messages to users. A new rule
// is a method of problems, which the method for the validated object calls. The tests in provisioner/graph break each rule once,
// and fail for a new rule that no test breaks.
package validation
