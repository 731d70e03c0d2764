// Package fleet contains the orders of orchestrations: which instances an orchestration upgrades, when, and how many at once. It reads
// the JSON of Kyma Environment Broker, checks it, and selects instances. It has no state and calls nothing.
package fleet
