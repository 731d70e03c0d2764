package gardenlet

import (
	"context"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
)

// Name suffixes and data keys of the objects from which Gardener's API server issues admin kubeconfigs.
const (
	clusterAuthoritySuffix = ".ca-cluster"
	clientAuthoritySuffix  = ".ca-client"
	authorityCertificate   = "ca.crt"
	authorityKey           = "ca.key"
)

// start starts a Shoot's runtime and stores the CA certificates that admin kubeconfigs need. The caller must not set the Shoot's
// address before start has returned, because users request kubeconfigs as soon as the address exists. start is idempotent.
func (g *Gardenlet) start(ctx context.Context, shoot *gardencorev1beta1.Shoot) (Endpoint, error) {
	clientCA, err := g.clientAuthority(ctx, shoot)
	if err != nil {
		return Endpoint{}, err
	}
	endpoint, err := g.Runtimes.Start(ctx, TechnicalID(g.Project, shoot.Name), clientCA)
	if err != nil {
		return Endpoint{}, fmt.Errorf("starting the runtime: %w", err)
	}
	return endpoint, g.publishAuthority(ctx, shoot, endpoint.CA)
}

// keepRunning starts the runtime of a Shoot that already has an address, for example after a restart of the gardenlet. It writes
// the address to the Shoot's status, because the address can have changed. keepRunning is idempotent.
func (g *Gardenlet) keepRunning(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	if len(shoot.Status.AdvertisedAddresses) == 0 {
		return nil
	}
	endpoint, err := g.start(ctx, shoot)
	if err != nil {
		return err
	}
	return g.writeStatus(ctx, shoot, func(status *gardencorev1beta1.ShootStatus) {
		status.AdvertisedAddresses = advertise(endpoint)
	})
}

// clientAuthority returns the certificate (PEM) of the CA that signs the runtime's client certificates. The CA is created once
// for each Shoot, so that existing kubeconfigs stay valid.
func (g *Gardenlet) clientAuthority(ctx context.Context, shoot *gardencorev1beta1.Shoot) ([]byte, error) {
	secret := &gardencorev1beta1.InternalSecret{ObjectMeta: g.authorityMeta(shoot, clientAuthoritySuffix), Type: corev1.SecretTypeOpaque}
	err := g.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if err == nil {
		return secret.Data[authorityCertificate], nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the client CA: %w", err)
	}
	key, err := g.authorityKey()
	if err != nil {
		return nil, err
	}
	authority, err := certificate.NewAuthority(TechnicalID(g.Project, shoot.Name), key)
	if err != nil {
		return nil, err
	}
	secret.Data = map[string][]byte{authorityCertificate: authority.CertificatePEM(), authorityKey: authority.KeyPEM()}
	if err := g.Client.Create(ctx, secret); err != nil {
		return nil, fmt.Errorf("storing the client CA: %w", err)
	}
	return authority.CertificatePEM(), nil
}

// publishAuthority stores the certificate of the CA that signed the runtime's serving certificate. Admin kubeconfigs contain it.
// publishAuthority writes only if the certificate has changed.
func (g *Gardenlet) publishAuthority(ctx context.Context, shoot *gardencorev1beta1.Shoot, certificatePEM []byte) error {
	published := &corev1.ConfigMap{ObjectMeta: g.authorityMeta(shoot, clusterAuthoritySuffix)}
	_, err := controllerutil.CreateOrUpdate(ctx, g.Client, published, func() error {
		published.Data = map[string]string{authorityCertificate: string(certificatePEM)}
		return nil
	})
	if err != nil {
		return fmt.Errorf("publishing the CA of the runtime: %w", err)
	}
	return nil
}

// authorityMeta returns the name and namespace of the object that stores one of a Shoot's CAs. Gardener's API server finds the
// object by this name.
func (g *Gardenlet) authorityMeta(shoot *gardencorev1beta1.Shoot, suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: g.namespace, Name: shoot.Name + suffix}
}

// dismantle stops a Shoot's runtime and deletes its CAs. It is idempotent.
func (g *Gardenlet) dismantle(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	if err := g.stop(ctx, shoot.Name); err != nil {
		return err
	}
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: g.authorityMeta(shoot, clusterAuthoritySuffix)},
		&gardencorev1beta1.InternalSecret{ObjectMeta: g.authorityMeta(shoot, clientAuthoritySuffix)},
	} {
		if err := g.Client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: %w", object.GetName(), err)
		}
	}
	return nil
}

// stop stops the runtime of the named Shoot. It succeeds even if the Shoot no longer exists or the runtime is already stopped.
func (g *Gardenlet) stop(ctx context.Context, shoot string) error {
	if err := g.Runtimes.Stop(ctx, TechnicalID(g.Project, shoot)); err != nil {
		return fmt.Errorf("stopping the runtime: %w", err)
	}
	return nil
}
