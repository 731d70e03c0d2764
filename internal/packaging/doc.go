// Command packaging generates files for installations: the files that the Helm chart copies from other folders of resources/, the README
// of the chart, and the kustomizations, which contain the rendered chart.
//
// The tests render the chart with Helm's library, apply it to a real API server, and compare every variable that the packaging uses with
// the configuration of the services.
package main

//go:generate go run . ../../resources
