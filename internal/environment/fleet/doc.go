// Package fleet contains the parameters of orchestrations: which instances an orchestration upgrades, when, and how many at once.
// It reads the JSON format of Kyma Environment Broker, checks it, and selects instances. It has no state and calls no other
// system.
package fleet
