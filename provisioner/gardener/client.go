package gardener

import (
	"context"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

const (
	// confirmDeletion is the annotation that Gardener requires before a Shoot can be deleted.
	confirmDeletion = "confirmation.gardener.cloud/deletion"

	// callTimeout bounds one call to Gardener.
	callTimeout = 30 * time.Second
)

// Client works on the Shoots of one Gardener project.
type Client struct {
	// connection returns the current connection to Gardener.
	connection func() connection
	namespace  string
}

// New returns a client for the project's namespace.
func New(api client.WithWatch, namespace string) *Client {
	return &Client{connection: func() connection { return connection{WithWatch: api, replaced: context.Background()} }, namespace: namespace}
}

// Get returns the Shoot, or failure.NotFound.
func (c *Client) Get(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	return c.get(ctx, name)
}

func (c *Client) get(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := c.connection().Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, shoot); err != nil {
		return nil, explain(err, "reading the Shoot %q", name)
	}

	return shoot, nil
}

// Probe lists a single Shoot. It fails if Gardener cannot be reached or rejects our credentials or permissions.
func (c *Client) Probe(ctx context.Context) error {
	err := c.connection().List(ctx, &gardencorev1beta1.ShootList{}, client.InNamespace(c.namespace), client.Limit(1))

	return explain(err, "listing one Shoot")
}

// Owned is a Shoot with the id of its runtime.
type Owned struct {
	Name, RuntimeID string
}

// Owned lists the Shoots that belong to runtimes.
func (c *Client) Owned(ctx context.Context) ([]Owned, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	shoots := &gardencorev1beta1.ShootList{}
	if err := c.connection().List(ctx, shoots, client.InNamespace(c.namespace)); err != nil {
		return nil, explain(err, "listing Shoots")
	}

	var owned []Owned

	for _, each := range shoots.Items {
		if id := each.Annotations[shoot.AnnotationRuntimeID]; id != "" {
			owned = append(owned, Owned{Name: each.Name, RuntimeID: id})
		}
	}

	return owned, nil
}

// Delete confirms the deletion of the runtime's Shoot and asks for it. A missing Shoot, or one of another runtime, is not an error.
func (c *Client) Delete(ctx context.Context, name, runtimeID string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	existing, err := c.get(ctx, name)
	if failure.Is(err, failure.NotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	if existing.Annotations[shoot.AnnotationRuntimeID] != runtimeID {
		return nil
	}

	if err := c.annotate(ctx, existing, confirmDeletion, "true"); err != nil {
		return err
	}

	if existing.DeletionTimestamp != nil {
		return nil
	}

	// A Shoot created under this name in the meantime has another UID and must stay.
	err = c.connection().Delete(ctx, existing, client.Preconditions{UID: &existing.UID})
	if err = explain(err, "deleting the Shoot %q", name); failure.Is(err, failure.NotFound) {
		return nil
	}

	return err
}

// Retry asks Gardener to retry the failed last operation of a Shoot, by an annotation that Gardener removes when it starts. A repeated call
// before that changes nothing.
func (c *Client) Retry(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	return c.annotate(ctx, shoot, v1beta1constants.GardenerOperation, v1beta1constants.ShootOperationRetry)
}

func (c *Client) annotate(ctx context.Context, shoot *gardencorev1beta1.Shoot, key, value string) error {
	if shoot.Annotations[key] == value {
		return nil
	}

	before := shoot.DeepCopy()
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, key, value)

	return explain(c.connection().Patch(ctx, shoot, client.MergeFrom(before)), "annotating the Shoot %q", shoot.Name)
}

// AdminKubeconfig requests an admin kubeconfig from Gardener. valid is its lifetime: Gardener rejects less than 10 minutes and shortens
// more than its maximum. A missing Shoot is failure.NotFound.
func (c *Client) AdminKubeconfig(ctx context.Context, name string, valid time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	shoot, err := c.get(ctx, name)
	if err != nil {
		return nil, err
	}

	seconds := int64(valid.Seconds())
	request := &authenticationv1alpha1.AdminKubeconfigRequest{
		Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: &seconds},
	}

	if err := c.connection().SubResource("adminkubeconfig").Create(ctx, shoot, request); err != nil {
		return nil, explain(err, "asking for the kubeconfig of the Shoot %q", name)
	}

	return request.Status.Kubeconfig, nil
}
