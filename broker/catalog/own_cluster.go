package catalog

import (
	"cmp"
	"encoding/base64"
	"encoding/json"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// applyOwn returns the cluster that the tenant brings, with the given parameters. For an update, present is the current cluster;
// for an order, it is nil. applyOwn rejects a kubeconfig with exec plugins or references to files, because the broker would run
// the plugins and read the files. Violations never quote the kubeconfig.
func (given parameters) applyOwn(present *environment.OwnCluster, violations *Violations) *environment.OwnCluster {
	own := environment.OwnCluster{}
	if present != nil {
		own = *present
	}

	own.ShootName = cmp.Or(given.ShootName, own.ShootName)
	own.ShootDomain = cmp.Or(given.ShootDomain, own.ShootDomain)

	if given.Kubeconfig == "" {
		return &own
	}

	kubeconfig, err := base64.StdEncoding.DecodeString(given.Kubeconfig)
	if err != nil {
		violations.require(false, paramKubeconfig, ruleKubeconfig, "must be valid base64")

		return &own
	}

	err = clusterclient.Check(secret.String(kubeconfig))
	violations.require(err == nil, paramKubeconfig, ruleKubeconfig, "%s", failure.Of(err).Text)

	own.Kubeconfig = secret.Stored(kubeconfig)

	return &own
}

// WithoutSecrets removes the kubeconfig from stored parameters, so that responses can contain them. It returns malformed
// parameters unchanged; no instance has any, because the broker rejects malformed parameters before it stores an instance.
func WithoutSecrets(parameters json.RawMessage) json.RawMessage {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(parameters, &fields); err != nil || fields[paramKubeconfig] == nil {
		return parameters
	}

	delete(fields, paramKubeconfig)

	shown, err := json.Marshal(fields)
	if err != nil {
		return nil // cannot happen: the fields were decoded before
	}

	return shown
}
