// Command gardener-apiserver serves Gardener's API in the local garden, behind the aggregation layer of its kube-apiserver.
package main

import (
	"os"

	"github.com/gardener/gardener/cmd/gardener-apiserver/app"
	"github.com/gardener/gardener/pkg/apiserver/features"
	_ "k8s.io/component-base/logs/json/register" // lets --logging-format=json work
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
)

func main() {
	features.RegisterFeatureGates()

	if err := app.NewCommand().ExecuteContext(signals.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}
