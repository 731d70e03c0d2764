package bundles

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

const (
	// contentKey is the Secret key under which the HMAC key for content is stored, next to the kubeconfig.
	contentKey = "content-key"
	keyBytes   = 32
)

// Kubeconfigs issues admin kubeconfigs of clusters. gardener.Client implements it.
type Kubeconfigs interface {
	AdminKubeconfig(ctx context.Context, shootName string, valid time.Duration) ([]byte, error)
}

// provideKubeconfig ensures that the runtime's Secret contains a kubeconfig that does not expire soon. It returns the HMAC key
// for content, which the Secret also contains.
func (i *Installer) provideKubeconfig(ctx context.Context, target installation.Target) (key []byte, err error) {
	found := &corev1.Secret{}
	name := client.ObjectKey{Namespace: i.Namespace, Name: secretName(target.RuntimeID)}

	err = i.Hub().Get(ctx, name, found)

	switch {
	case apierrors.IsNotFound(err):
		return i.createKubeconfig(ctx, target)
	case err != nil:
		return nil, explain(err, "the kubeconfig of the runtime")
	case len(found.Data[contentKey]) != keyBytes:
		return nil, failure.New(failure.Permanent, "the Secret %s/%s of the bundle provisioner was changed: delete it and retry", name.Namespace, name.Name).
			WithReason(failure.ReasonConfiguration, failure.ComponentBundles)
	}

	if due(found, i.Now()) {
		if err := i.renew(ctx, found, target.ShootName); err != nil {
			return nil, err
		}
	}

	return found.Data[contentKey], nil
}

// createKubeconfig creates the runtime's Secret with a new kubeconfig and a new HMAC key.
func (i *Installer) createKubeconfig(ctx context.Context, target installation.Target) (key []byte, err error) {
	key = make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails

	created := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: i.Namespace, Name: secretName(target.RuntimeID),
			Labels: map[string]string{LabelRuntime: target.RuntimeID, labelManagedBy: managedBy},
		},
		Data: map[string][]byte{contentKey: key},
	}

	if err := i.fill(ctx, created, target.ShootName); err != nil {
		return nil, err
	}

	if err := i.Hub().Create(ctx, created); err != nil {
		return nil, explain(err, "the kubeconfig of the runtime")
	}

	return key, nil
}

// renew replaces the kubeconfig in a Secret. It fails if the Secret was changed or deleted since it was read.
func (i *Installer) renew(ctx context.Context, found *corev1.Secret, shootName string) error {
	if err := i.fill(ctx, found, shootName); err != nil {
		return err
	}

	return explain(i.Hub().Update(ctx, found), "the kubeconfig of the runtime")
}

// fill sets a new kubeconfig in the Secret object, and annotations with its renewal and expiry times. It does not write the
// Secret to the hub.
func (i *Installer) fill(ctx context.Context, into *corev1.Secret, shootName string) error {
	kubeconfig, err := i.Kubeconfigs.AdminKubeconfig(ctx, shootName, i.Validity)
	if err != nil {
		return err
	}

	from, until := clusterclient.Validity(secret.String(kubeconfig))
	if until.IsZero() {
		from = i.Now()
		until = from.Add(i.Validity)
	}

	const half = 2

	renewal := from.Add(until.Sub(from) / half)
	if earliest := i.Now().Add(renewRetry); renewal.Before(earliest) {
		renewal = earliest // Gardener returned an old certificate
	}

	into.Data[kubeconfigKey] = kubeconfig
	metav1.SetMetaDataAnnotation(&into.ObjectMeta, annotationRenewal, renewal.UTC().Format(time.RFC3339))
	metav1.SetMetaDataAnnotation(&into.ObjectMeta, annotationExpiry, until.UTC().Format(time.RFC3339))
	metav1.SetMetaDataAnnotation(&into.ObjectMeta, annotationShoot, shootName)

	return nil
}

// due reports whether the kubeconfig of a Secret must be renewed. It returns true if the annotation with the renewal time is
// missing or invalid.
func due(found metav1.Object, now time.Time) bool {
	renewal, err := time.Parse(time.RFC3339, found.GetAnnotations()[annotationRenewal])

	return err != nil || !now.Before(renewal)
}

// explain converts an error from the hub to a failure.Error, and nil to nil. Its texts never quote a Secret. A conflict means
// that another replica is working on the same runtime, or that the object was removed in the meantime.
func explain(err error, where string) error {
	if err == nil {
		return nil
	}

	// The concurrency limit and the circuit breaker reject requests with a failure.Error.
	if typed := failure.Of(err); typed.Reason == failure.ReasonSystemUnavailable || typed.Reason == failure.ReasonBusy {
		return failure.Wrap(typed.Kind, err, "%s: %s", where, typed.Text).WithReason(typed.Reason, typed.Component)
	}

	kind, text := failure.Transient, "the cluster of the bundle provisioner does not respond correctly"

	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		text = "another replica of the Provisioner is changing the installation"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		text = "the cluster of the bundle provisioner rejects the credentials, or does not grant them a permission: an operator must " +
			"correct APP_KYMA_BUNDLES_KUBECONFIG_PATH or its roles"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		kind, text = failure.Permanent, "the cluster of the bundle provisioner rejects the BundleDeployment: an operator must update its "+
			"CustomResourceDefinitions"
	case apierrors.IsNotFound(err):
		text = "the cluster of the bundle provisioner lacks the core.rukpak.io API or the namespace: an operator must install them"
	}

	return failure.Wrap(kind, fmt.Errorf("calling the hub: %w", err), "%s: %s", where, text).
		WithReason(failure.ReasonHTTPStatus, failure.ComponentBundles)
}
