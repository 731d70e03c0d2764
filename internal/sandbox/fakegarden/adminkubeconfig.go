package fakegarden

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
)

// Gardener's limits for the validity of an admin kubeconfig. A shorter validity is an error; a longer one is reduced to the
// maximum.
const (
	minValidity     = 10 * time.Minute
	defaultValidity = time.Hour
	maxValidity     = 24 * time.Hour
)

// issueAdminKubeconfig sets the status of a request for a Shoot's admin kubeconfig. As in Gardener, each request gets a new
// client certificate from the runtime's client CA. It fails if the runtime has no address yet or if the gardenlet has not
// published the CA certificates. The errors and the order of the checks are the same as in Gardener: for example, it rejects a
// validity that is too short before it looks for the Shoot.
func issueAdminKubeconfig(
	ctx context.Context, objects client.Reader, key client.ObjectKey, user string, request *authenticationv1alpha1.AdminKubeconfigRequest,
) error {
	validity := defaultValidity
	if seconds := request.Spec.ExpirationSeconds; seconds != nil {
		if validity = min(time.Duration(*seconds)*time.Second, maxValidity); validity < minValidity {
			return invalidRequest("", field.Invalid(field.NewPath("spec", "expirationSeconds"), *seconds,
				"may not specify a duration less than 10 minutes"))
		}
	}
	shoot := &gardencorev1beta1.Shoot{}
	if err := objects.Get(ctx, key, shoot); err != nil {
		return err
	}
	addresses := slices.DeleteFunc(slices.Clone(shoot.Status.AdvertisedAddresses), notForAPIServer)
	if len(addresses) == 0 {
		return invalidRequest(shoot.Name, field.Invalid(field.NewPath("status", "status"), shoot.Status.AdvertisedAddresses,
			"no suitable advertised address for kube-apiserver found in .status.advertisedAddresses"))
	}
	signer := &gardencorev1beta1.InternalSecret{}
	if err := objects.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name + ".ca-client"}, signer); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("could not get client CA secret: %w", err))
	}
	authority, err := certificate.LoadAuthority(signer.Data["ca.crt"], signer.Data["ca.key"])
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("could not load client CA certificate from secret: %w", err))
	}
	cluster := &corev1.ConfigMap{}
	if err := objects.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name + ".ca-cluster"}, cluster); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("could not get cluster CA config map: %w", err))
	}
	if cluster.Data["ca.crt"] == "" {
		return apierrors.NewInternalError(errors.New("could not load cluster CA bundle"))
	}
	pair, err := authority.IssueClient(certificate.Client{
		CommonName:    "gardener.cloud:admin:" + user,
		Organizations: []string{v1beta1constants.ShootSystemAdminsGroupName},
		Validity:      validity,
	})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	request.Status.ExpirationTimestamp = metav1.NewTime(pair.NotAfter)
	request.Status.Kubeconfig, err = adminKubeconfig(key, addresses, []byte(cluster.Data["ca.crt"]), pair)
	return err
}

// notForAPIServer reports whether an advertised address belongs to something other than the runtime's API server, such as the
// issuer of ServiceAccount tokens. Such an address must not be in a kubeconfig. Gardener uses only the names below for API server
// addresses; the simulated gardenlet advertises only an external address.
func notForAPIServer(address gardencorev1beta1.ShootAdvertisedAddress) bool {
	return !slices.Contains([]string{
		v1beta1constants.AdvertisedAddressExternal, v1beta1constants.AdvertisedAddressInternal,
		v1beta1constants.AdvertisedAddressUnmanaged, v1beta1constants.AdvertisedAddressWildcardTLSSeedBound,
	}, address.Name)
}

// adminKubeconfig returns a kubeconfig with a context for each address, named as in Gardener. The first context is the current
// one. The kubeconfig contains the user's private key, so errors must not quote it.
func adminKubeconfig(
	shoot client.ObjectKey, addresses []gardencorev1beta1.ShootAdvertisedAddress, clusterCA []byte, pair certificate.Pair,
) ([]byte, error) {
	user := shoot.Namespace + "--" + shoot.Name
	config := clientcmdapi.NewConfig()
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key}
	config.CurrentContext = user + "-" + addresses[0].Name
	for _, address := range addresses {
		name := user + "-" + address.Name
		config.Clusters[name] = &clientcmdapi.Cluster{Server: address.URL, CertificateAuthorityData: clusterCA}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("encoding the kubeconfig of %s: %w", shoot, err))
	}
	return content, nil
}

// invalidRequest returns a 422 error about one field. Like Gardener, it names the Shoot only in errors about the Shoot, not in
// errors about the request.
func invalidRequest(name string, problem *field.Error) error {
	kind := schema.GroupKind{Group: authenticationv1alpha1.SchemeGroupVersion.Group, Kind: "AdminKubeconfigRequest"}
	return apierrors.NewInvalid(kind, name, field.ErrorList{problem})
}
