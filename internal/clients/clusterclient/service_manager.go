package clusterclient

import (
	"bytes"
	"cmp"
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

// ApplyServiceManager writes the credentials to the Secret of the SAP BTP service operator in the instance's runtime. It creates
// the Secret's namespace if it is missing. ApplyServiceManager is idempotent. If the Secret already has a cluster ID, it keeps
// this ID, because Service Manager stores the runtime's service instances under it. The other values are overwritten, even if
// other clients have set them.
func (a Access) ApplyServiceManager(ctx context.Context, instance environment.Instance, credentials environment.ServiceManager) error {
	return a.inRuntime(ctx, instance, func(ctx context.Context, client *rest.RESTClient) error {
		_, wanted, err := serviceManagerData(ctx, client, instance, credentials)
		if err != nil {
			return err
		}

		return actionError(applyServiceManager(ctx, client, wanted), "write the BTP service operator's Secret")
	})
}

// RepairServiceManager is like ApplyServiceManager, for a Secret that may have been changed or deleted: it writes only if a
// value differs, and reports whether it has written. It calls begin before the first write. If begin fails, it does not write
// anything.
func (a Access) RepairServiceManager(ctx context.Context, instance environment.Instance, credentials environment.ServiceManager,
	begin func(context.Context) error,
) (repaired bool, err error) {
	err = a.inRuntime(ctx, instance, func(ctx context.Context, client *rest.RESTClient) error {
		present, wanted, err := serviceManagerData(ctx, client, instance, credentials)
		if err != nil {
			return err
		}

		for key, value := range wanted {
			repaired = repaired || !bytes.Equal(present[key], value)
		}

		if !repaired {
			return nil
		}

		if err := begin(ctx); err != nil {
			return err
		}

		return actionError(applyServiceManager(ctx, client, wanted), "write the BTP service operator's Secret")
	})

	return repaired && err == nil, err
}

// serviceManagerData returns the values in the Secret and the wanted values. present is nil if there is no Secret. The wanted
// cluster ID is the one in the Secret or, if there is none, the ID of the instance.
func serviceManagerData(ctx context.Context, client *rest.RESTClient, instance environment.Instance, credentials environment.ServiceManager,
) (present, wanted map[string][]byte, err error) {
	stored := &corev1.Secret{}

	err = client.Get().AbsPath(serviceManagerSecrets, serviceManagerSecret).Do(ctx).Into(stored)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, nil, actionError(err, "read the BTP service operator's Secret")
	}

	return stored.Data, map[string][]byte{
		keyClientID:     []byte(credentials.ClientID.Reveal().Reveal()),
		keyClientSecret: []byte(credentials.ClientSecret.Reveal().Reveal()),
		keyURL:          []byte(credentials.URL),
		keyTokenURL:     []byte(credentials.TokenURL),
		keyClusterID:    []byte(cmp.Or(string(stored.Data[keyClusterID]), instance.ServiceManagerClusterID())),
	}, nil
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
			Annotations: map[string]string{"environment-broker.io/warning": "The environment broker overwrites changes to this Secret."},
		},
		Data: data,
		Type: corev1.SecretTypeOpaque,
	})
	if err != nil {
		return failure.New(failure.Internal, "the BTP service operator's Secret cannot be encoded") // the cause might quote the credentials
	}

	return client.Patch(types.ApplyPatchType).AbsPath(serviceManagerSecrets, serviceManagerSecret).
		Param("fieldManager", fieldManager).Param("force", "true").Body(body).Do(ctx).Into(&corev1.Secret{})
}
