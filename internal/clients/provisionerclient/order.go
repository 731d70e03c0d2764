package provisionerclient

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// Labels that Director stores for a runtime.
const (
	labelInstance   = "broker_instance_id"
	labelSubAccount = "global_subaccount_id"
)

// maxRuntimeName is the maximum length of a runtime's name in Director, in characters.
const maxRuntimeName = 36

// OrderRuntime orders the runtime of the instance. targetSecret names the Gardener secret with the infrastructure credentials.
// The order is derived only from the instance and the target secret, so the Provisioner recognizes a repeated call with the same
// IdempotencyKey.
//
// If the name of the cluster is already taken, OrderRuntime repeats the order with each of the earlier target secrets in turn. If
// the configured target secret has changed between two attempts of an operation, the later attempt therefore finds the runtime
// that the first one ordered.
//
// The Kyma Provisioner cannot set the IP ranges of pods and services. If the ranges are only the plan's defaults, OrderRuntime
// repeats the order without them, and Gardener chooses the ranges. If the user chose the ranges, the error is failure.Permanent.
func (c *Client) OrderRuntime(ctx context.Context, caller Caller, instance environment.Instance, targetSecret string, earlier ...string,
) (Operation, error) {
	ordered, err := c.orderWith(ctx, caller, instance, targetSecret)

	for _, secret := range earlier {
		if !failure.Is(err, failure.Permanent) || failure.Of(err).Reason != failure.ReasonAlreadyExists {
			break
		}

		ordered, err = c.orderWith(ctx, caller, instance, secret)
	}

	return ordered, err
}

// orderWith orders the runtime once, with the credentials in the given target secret.
func (c *Client) orderWith(ctx context.Context, caller Caller, instance environment.Instance, targetSecret string) (Operation, error) {
	order, err := newOrder(instance, targetSecret)
	if err != nil {
		return Operation{}, err
	}

	order.ClientData = c.clientData(instance)

	return sendOrder(order, instance.Request.Parameters, func(order *wire.ProvisionRuntimeInput) (Operation, error) {
		return c.withoutUnknown(order.ClientData, func(clientData *string) (Operation, error) {
			sent := *order
			sent.ClientData = clientData

			return c.ProvisionRuntime(ctx, caller, &sent)
		})
	})
}

// CheckOrder returns an error if the runtime of the instance cannot be ordered. The error is failure.Invalid if the
// user's request cannot be fulfilled, and failure.Internal if the plan or the provider is not supported.
func CheckOrder(instance environment.Instance) error {
	_, err := newOrder(instance, "")

	return err
}

// sendOrder sends the order. If the Provisioner does not support the ranges of pods and services, sendOrder sends
// the order again without them, unless the user's parameters set a range.
func sendOrder(order *wire.ProvisionRuntimeInput, parameters json.RawMessage, send func(*wire.ProvisionRuntimeInput) (Operation, error),
) (Operation, error) {
	ordered, err := send(order)
	if !errors.Is(err, ErrNotUnderstood) {
		return ordered, err
	}

	cluster := *order.ClusterConfig.GardenerConfig
	if cluster.PodsCidr == nil && cluster.ServicesCidr == nil {
		return ordered, err
	}

	chosen, parseErr := choosesRanges(parameters)

	switch {
	case parseErr != nil:
		return ordered, parseErr
	case chosen:
		return ordered, failure.Wrap(failure.Permanent, err, "the Provisioner does not support pod and service ranges: "+
			"send the request without networking.pods and networking.services, or ask the operator to upgrade the Provisioner").
			WithReason("", failure.ComponentProvisioner)
	}

	cluster.PodsCidr, cluster.ServicesCidr = nil, nil
	clusterConfig, supported := *order.ClusterConfig, *order
	clusterConfig.GardenerConfig, supported.ClusterConfig = &cluster, &clusterConfig

	return send(&supported)
}

// choosesRanges reports whether the parameters set the range of pods or services.
func choosesRanges(parameters json.RawMessage) (bool, error) {
	var given struct {
		Networking struct {
			Pods     string `json:"pods"`
			Services string `json:"services"`
		} `json:"networking"`
	}

	if len(parameters) == 0 {
		return false, nil
	}

	if err := json.Unmarshal(parameters, &given); err != nil {
		return false, failure.Wrap(failure.Internal, err, "parsing the parameters of the instance")
	}

	return given.Networking.Pods != "" || given.Networking.Services != "", nil
}

// newOrder converts the instance to the Provisioner's input. It omits fields without a value, so the Provisioner
// chooses their values.
func newOrder(instance environment.Instance, targetSecret string) (*wire.ProvisionRuntimeInput, error) {
	cluster := instance.Request.Cluster

	provider, err := providerConfig(instance.Provider, cluster)
	if err != nil {
		return nil, err
	}

	order := &wire.GardenerConfigInput{
		Name:                   instance.ShootName,
		KubernetesVersion:      cluster.KubernetesVersion,
		Provider:               instance.Provider,
		TargetSecret:           targetSecret,
		Region:                 instance.Region,
		MachineType:            cluster.MachineType,
		WorkerCidr:             cluster.NodesCIDR,
		PodsCidr:               unlessZero(cluster.PodsCIDR),
		ServicesCidr:           unlessZero(cluster.ServicesCIDR),
		AutoScalerMin:          cluster.AutoScalerMin,
		AutoScalerMax:          cluster.AutoScalerMax,
		MaxSurge:               cluster.MaxSurge,
		MaxUnavailable:         cluster.MaxUnavailable,
		Purpose:                &cluster.Purpose,
		LicenceType:            unlessZero(cluster.LicenceType),
		EuAccess:               unlessZero(cluster.EUAccess),
		ProviderSpecificConfig: provider,
		OidcConfig:             oidcInput(cluster.OIDC),
	}

	if cluster.VolumeType != "" {
		order.DiskType, order.VolumeSizeGB = &cluster.VolumeType, &cluster.VolumeSizeGB
	}

	if cluster.OpenStack != nil {
		order.ExposureClassName = &cluster.OpenStack.ExposureClassName
	}

	labels := map[string]any{labelInstance: instance.ID, labelSubAccount: instance.SubAccountID}

	return &wire.ProvisionRuntimeInput{
		RuntimeInput:  &wire.RuntimeInput{Name: runtimeName(instance), Labels: labels},
		ClusterConfig: &wire.ClusterConfigInput{GardenerConfig: order, Administrators: cluster.Administrators},
		KymaConfig:    kymaInput(cluster.Kyma),
	}, nil
}

// runtimeName returns the name of the runtime in Director: the name of the instance followed by the name of the
// Shoot, which is unique. Director accepts only lower-case letters, digits, hyphens and dots, and no leading digit.
func runtimeName(instance environment.Instance) string {
	name := strings.ToLower(instance.Name)
	if strings.IndexAny(name, "0123456789") == 0 {
		name = "runtime-" + name
	}

	suffix := "-" + instance.ShootName
	longest := max(maxRuntimeName-len(suffix), 0)

	return strings.TrimRight(name[:min(len(name), longest)], "-") + suffix
}

// oidcInput converts the OpenID Connect settings. If oidc is nil, the request omits the settings: the Provisioner then uses its
// defaults for a new cluster, and an upgrade does not change the settings.
func oidcInput(oidc *environment.OIDC) *wire.OIDCConfigInput {
	if oidc == nil {
		return nil
	}

	return &wire.OIDCConfigInput{
		ClientID: oidc.ClientID, IssuerURL: oidc.IssuerURL, GroupsClaim: oidc.GroupsClaim, UsernameClaim: oidc.UsernameClaim,
		UsernamePrefix: oidc.UsernamePrefix, SigningAlgs: oidc.SigningAlgs,
	}
}

// unlessZero returns a pointer to the value, or nil for the zero value, which omits the field from the request.
func unlessZero[Value comparable](value Value) *Value {
	var zero Value
	if value == zero {
		return nil
	}

	return &value
}
