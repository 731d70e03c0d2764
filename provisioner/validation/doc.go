// Package validation validates orders and upgrades before anything is done for them, and merges upgrades into present orders.
// Gardener accepts what passes, as far as that can be decided without the cloud profile.
//
// Errors list up to ten problems with the paths of their fields in the request. A new rule is a method of problems, called from
// the function of its object; validation_rules_test.go in provisioner/graph breaks each rule once.
package validation
