package adminkubeconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
)

const (
	// UserPrefix begins the common name of the client certificates; the name of who asked follows.
	UserPrefix = "gardener.cloud:admin:"

	shortest        = 10 * time.Minute
	longest         = 24 * time.Hour
	usual           = time.Hour
	authorityKey    = "ca.key"
	authorityPublic = "ca.crt"
)

// Issue fills in the status of a request for the admin kubeconfig of a Shoot, made by a user.
func Issue(
	ctx context.Context, objects client.Reader, key client.ObjectKey, user string, request *authenticationv1alpha1.AdminKubeconfigRequest,
) error {
	validity, err := validity(request)
	if err != nil {
		return err
	}
	shoot := &gardencorev1beta1.Shoot{}
	if err := objects.Get(ctx, key, shoot); err != nil {
		return err
	}
	addresses, err := apiServers(shoot)
	if err != nil {
		return err
	}
	authority, err := clientAuthority(ctx, objects, key)
	if err != nil {
		return err
	}
	clusterCA, err := clusterAuthority(ctx, objects, key)
	if err != nil {
		return err
	}
	pair, err := authority.IssueClient(certificate.Client{
		CommonName:    UserPrefix + user,
		Organizations: []string{v1beta1constants.ShootSystemAdminsGroupName},
		Validity:      validity,
	})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	kubeconfig, err := kubeconfig(key, addresses, clusterCA, pair)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	request.Status.Kubeconfig = kubeconfig
	request.Status.ExpirationTimestamp = metav1.NewTime(pair.NotAfter)
	return nil
}

func validity(request *authenticationv1alpha1.AdminKubeconfigRequest) (time.Duration, error) {
	if request.Spec.ExpirationSeconds == nil {
		return usual, nil
	}
	wanted := time.Duration(*request.Spec.ExpirationSeconds) * time.Second
	if wanted < shortest {
		return 0, apierrors.NewInvalid(requestKind(), "", field.ErrorList{field.Invalid(
			field.NewPath("spec", "expirationSeconds"), *request.Spec.ExpirationSeconds, "may not specify a duration less than 10 minutes",
		)})
	}
	return min(wanted, longest), nil
}

// apiServers returns the addresses at which the API server of the runtime answers.
func apiServers(shoot *gardencorev1beta1.Shoot) ([]gardencorev1beta1.ShootAdvertisedAddress, error) {
	names := []string{
		v1beta1constants.AdvertisedAddressExternal,
		v1beta1constants.AdvertisedAddressInternal,
		v1beta1constants.AdvertisedAddressUnmanaged,
		v1beta1constants.AdvertisedAddressWildcardTLSSeedBound,
	}
	var addresses []gardencorev1beta1.ShootAdvertisedAddress
	for _, address := range shoot.Status.AdvertisedAddresses {
		if slices.Contains(names, address.Name) {
			addresses = append(addresses, address)
		}
	}
	if len(addresses) > 0 {
		return addresses, nil
	}
	return nil, apierrors.NewInvalid(requestKind(), shoot.Name, field.ErrorList{field.Invalid(
		field.NewPath("status", "status"), shoot.Status.AdvertisedAddresses,
		"no suitable advertised address for kube-apiserver found in .status.advertisedAddresses",
	)})
}

func clientAuthority(ctx context.Context, objects client.Reader, shoot client.ObjectKey) (*certificate.Authority, error) {
	secret := &gardencorev1beta1.InternalSecret{}
	key := client.ObjectKey{Namespace: shoot.Namespace, Name: shoot.Name + ".ca-client"}
	if err := objects.Get(ctx, key, secret); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("could not get client CA secret: %w", err))
	}
	authority, err := certificate.LoadAuthority(secret.Data[authorityPublic], secret.Data[authorityKey])
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("could not load client CA certificate from secret: %w", err))
	}
	return authority, nil
}

func clusterAuthority(ctx context.Context, objects client.Reader, shoot client.ObjectKey) ([]byte, error) {
	published := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: shoot.Namespace, Name: shoot.Name + ".ca-cluster"}
	if err := objects.Get(ctx, key, published); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("could not get cluster CA config map: %w", err))
	}
	bundle := published.Data[authorityPublic]
	if bundle == "" {
		return nil, apierrors.NewInternalError(errors.New("could not load cluster CA bundle"))
	}
	return []byte(bundle), nil
}
