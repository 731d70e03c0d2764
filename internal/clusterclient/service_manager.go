package clusterclient

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// The Secret that the SAP BTP service operator reads. The operator determines its name, namespace and keys.
const (
	serviceManagerNamespace = "kyma-system"
	serviceManagerSecret    = "sap-btp-manager" //nolint:gosec // a name

	namespaces            = "/api/v1/namespaces"
	serviceManagerSecrets = namespaces + "/" + serviceManagerNamespace + "/secrets"

	keyClientID     = "clientid"
	keyClientSecret = "clientsecret"
	keyURL          = "sm_url"
	keyTokenURL     = "tokenurl"
	keyClusterID    = "cluster_id"
)

// fieldManager owns the fields of the Secret in server-side apply.
const fieldManager = managedBy

// ApplyServiceManager writes the credentials to the Secret of the SAP BTP service operator in the instance's runtime, and creates its
// namespace if it is missing. A repeated call changes nothing. If the Secret has a cluster ID already, it keeps this ID, because
// Service Manager knows the runtime's service instances under it. The other values are overwritten, even those of other clients.
func (a Access) ApplyServiceManager(ctx context.Context, instance environment.Instance, credentials environment.ServiceManager) error {
	config, err := a.config(ctx, instance)
	if err != nil {
		return err
	}

	client, disconnect, err := connect(config, a.connections(instance))
	if err != nil {
		return err
	}
	defer disconnect()

	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	clusterID, err := storedClusterID(ctx, client)
	if err != nil {
		return actionError(err, "read the Secret of the BTP service operator")
	}

	if clusterID == "" {
		clusterID = instance.ServiceManagerClusterID()
	}

	return actionError(applyServiceManager(ctx, client, map[string][]byte{
		keyClientID:     []byte(credentials.ClientID.Reveal().Reveal()),
		keyClientSecret: []byte(credentials.ClientSecret.Reveal().Reveal()),
		keyURL:          []byte(credentials.URL),
		keyTokenURL:     []byte(credentials.TokenURL),
		keyClusterID:    []byte(clusterID),
	}), "write the Secret of the BTP service operator")
}

// storedClusterID returns the cluster ID in the Secret, or an empty string if there is none.
func storedClusterID(ctx context.Context, client *rest.RESTClient) (string, error) {
	present := &corev1.Secret{}

	err := client.Get().AbsPath(serviceManagerSecrets, serviceManagerSecret).Do(ctx).Into(present)
	if apierrors.IsNotFound(err) {
		return "", nil
	}

	return string(present.Data[keyClusterID]), err
}

// applyServiceManager creates the namespace if it is missing, and applies the Secret.
func applyServiceManager(ctx context.Context, client *rest.RESTClient, data map[string][]byte) error {
	err := client.Post().AbsPath(namespaces).
		Body(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: serviceManagerNamespace}}).Do(ctx).Error()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}

	body, err := json.Marshal(&corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name: serviceManagerSecret, Namespace: serviceManagerNamespace,
			Labels:      map[string]string{labelManagedBy: managedBy},
			Annotations: map[string]string{"environment-broker.io/warning": "The environment broker overwrites changes of this Secret."},
		},
		Data: data,
		Type: corev1.SecretTypeOpaque,
	})
	if err != nil {
		return failure.New(failure.Internal, "the Secret of the BTP service operator cannot be encoded") // a cause might quote it
	}

	return client.Patch(types.ApplyPatchType).AbsPath(serviceManagerSecrets, serviceManagerSecret).
		Param("fieldManager", fieldManager).Param("force", "true").Body(body).Do(ctx).Error()
}
