// Package validation validates orders and upgrades before they are accepted, and merges upgrades into present orders. It calls no
// system and reads no database.
//
// Gardener accepts an order that passes, unless the order needs something that only the cloud profile or the project can answer:
// an offered version, an existing machine type, a credentials binding. Such an order fails when the Shoot is created.
//
// An error lists up to ten problems with the paths of their fields in the request; clients show the texts to users. A new rule is
// a method of problems, called from the method of its object. The tests in provisioner/graph break each rule once and fail if no
// test breaks a new one.
package validation
