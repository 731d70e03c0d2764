package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/catalog"
	brokerservice "github.com/environment-broker/environment-broker/broker/service"
	bundleservice "github.com/environment-broker/environment-broker/bundle/service"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/sandbox"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	provisionerservice "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/resources"
)

// section is a section of the configuration page: a program with its environment variables.
type section struct {
	Title     string
	Variables []program.Variable
}

// configurationPage returns the variables of the services and the sandbox.
func configurationPage() (any, error) {
	return []section{
		{"Broker", program.Variables(program.Prefix, brokerservice.DefaultConfig())},
		{"Provisioner", program.Variables(program.Prefix, provisionerservice.DefaultConfig())},
		{"Bundle provisioner", program.Variables(program.Prefix, bundleservice.DefaultConfig())},
		{"Sandbox", program.Variables(sandbox.Prefix, sandbox.DefaultConfig())},
	}, nil
}

// processesPage returns the processes of the broker with the default configuration. They contain all steps, because a
// configuration can only turn steps off.
func processesPage() (any, error) {
	return process.Describe(brokerservice.Processes(brokerservice.DefaultConfig(), brokerservice.Parts{})), nil
}

// provisionerProcessesPage returns the processes of the Provisioner with the default limits.
func provisionerProcessesPage() (any, error) { return process.Describe(provisionerProcesses()), nil }

// provisionerProcesses returns the processes of a Provisioner with all optional systems, and therefore with all steps.
func provisionerProcesses() []process.Process[operation.Data] {
	return provisionerservice.Processes(provisionerservice.DefaultConfig(), provisionerservice.Parts{
		Director: &director.Client{}, Tokens: &director.Client{},
		ForgetBundles: func(context.Context, string) (installation.Progress, error) { return installation.Progress{}, nil },
	})
}

// errorsPage returns the error responses in the order of their statuses, and the reasons of failed operations.
func errorsPage() (any, error) {
	responses, err := broker.ErrorCatalog()
	slices.SortStableFunc(responses, func(a, b broker.DocumentedError) int { return cmp.Compare(a.Status, b.Status) })

	return map[string]any{"Responses": responses, "Reasons": failure.Reasons()}, err
}

// plansPage returns the plans of the built-in catalog as Markdown. The schemas contain the broker's default Kubernetes
// version.
func plansPage() (any, error) {
	defaults := brokerservice.DefaultConfig()

	offer, err := catalog.Load(resources.Catalog(), catalog.Options{
		KubernetesVersion: defaults.KubernetesVersion, OperationTimeout: defaults.Engine.OperationTimeout,
		KymaVersion: "1.1.0", KymaVersionOnDemand: true, // the page also describes what brokers with Kyma offer
	})
	if err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}

	return offer.Page()
}
