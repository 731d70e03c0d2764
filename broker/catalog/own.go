package catalog

import (
	"encoding/base64"
	"encoding/json"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/runtimeaccess"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// applyOwn puts what a request says of the tenant's own cluster over what there is, and checks the kubeconfig. No text repeats it.
func (given parameters) applyOwn(present *environment.OwnCluster, wrong *violations) *environment.OwnCluster {
	own := environment.OwnCluster{}
	if present != nil {
		own = *present
	}

	set(&own.ShootName, &given.ShootName)
	set(&own.ShootDomain, &given.ShootDomain)

	if given.Kubeconfig == "" {
		return &own
	}

	kubeconfig, err := base64.StdEncoding.DecodeString(given.Kubeconfig)
	if err != nil {
		wrong.unless(false, paramKubeconfig, ruleKubeconfig, "it is not encoded as base64")

		return &own
	}

	err = runtimeaccess.Check(secret.String(kubeconfig))
	wrong.unless(err == nil, paramKubeconfig, ruleKubeconfig, "%s", failure.Of(err).Text)

	own.Kubeconfig = secret.Stored(kubeconfig)

	return &own
}

// Shown returns parameters without those that are secret.
func Shown(parameters json.RawMessage) json.RawMessage {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(parameters, &fields); err != nil || fields[paramKubeconfig] == nil {
		return parameters
	}

	delete(fields, paramKubeconfig)

	shown, err := json.Marshal(fields)
	if err != nil {
		return nil // what was read can be written
	}

	return shown
}
