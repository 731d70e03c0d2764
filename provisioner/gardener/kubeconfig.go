package gardener

import (
	"context"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
)

// AdminKubeconfig requests a kubeconfig with cluster-admin rights. valid is its lifetime: Gardener rejects lifetimes below 10
// minutes, and shortens lifetimes above its maximum. AdminKubeconfig fails with failure.NotFound if the Shoot does not exist.
func (c *Client) AdminKubeconfig(ctx context.Context, name string, valid time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	shoot, err := c.Get(ctx, name)
	if err != nil {
		return nil, err
	}

	seconds := int64(valid.Seconds())
	request := &authenticationv1alpha1.AdminKubeconfigRequest{
		Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: &seconds},
	}

	if err := c.connection().SubResource("adminkubeconfig").Create(ctx, shoot, request); err != nil {
		return nil, explain(err, "requesting the kubeconfig of the Shoot %q", name)
	}

	return request.Status.Kubeconfig, nil
}
