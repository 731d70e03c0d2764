package gardener

import (
	"context"
	"fmt"
	"net/http"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

const (
	// confirmDeletion is what Gardener's admission asks for before a Shoot may be removed.
	confirmDeletion = "confirmation.gardener.cloud/deletion"

	// callTimeout bounds one call to Gardener.
	callTimeout = 30 * time.Second
)

// Client works on the Shoots of one Gardener project.
type Client struct {
	api       client.WithWatch
	namespace string
}

// New returns a client for the project's namespace.
func New(api client.WithWatch, namespace string) *Client {
	return &Client{api: api, namespace: namespace}
}

// Connect returns access to the Gardener API that the kubeconfig file names. The guards wrap what sends the requests; watches go
// round them: they last, and there is one for each replica.
func Connect(kubeconfigPath string, guards ...func(http.RoundTripper) http.RoundTripper) (client.WithWatch, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfigPath)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of Gardener, %s; APP_GARDENER_KUBECONFIG_PATH says where it is: %w", kubeconfigPath, err)
	}

	const burst, perSecond = 200, 100 // hundreds of operations share this client; Gardener limits on its own side

	config.QPS, config.Burst = perSecond, burst

	// They are about fields that Gardener will retire: for whoever changes package shoot, whose golden files are asked about them.
	config.WarningHandlerWithContext = rest.NoWarnings{}

	for _, guard := range guards {
		config.Wrap(aroundWatches(guard))
	}

	scheme := runtime.NewScheme()

	builder := runtime.NewSchemeBuilder(gardencorev1beta1.AddToScheme, authenticationv1alpha1.AddToScheme, corev1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds of Gardener: %w", err)
	}

	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for Gardener: %w", err)
	}

	return api, nil
}

// Get returns the Shoot, or failure.NotFound.
func (c *Client) Get(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	return c.get(ctx, name)
}

func (c *Client) get(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := c.api.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, shoot); err != nil {
		return nil, explain(err, "reading the Shoot %q", name)
	}

	return shoot, nil
}

// Probe reads as little as it can.
func (c *Client) Probe(ctx context.Context) error {
	err := c.api.List(ctx, &gardencorev1beta1.ShootList{}, client.InNamespace(c.namespace), client.Limit(1))

	return explain(err, "listing one Shoot")
}

// Owned is a Shoot and the runtime that it belongs to.
type Owned struct {
	Name, RuntimeID string
}

// Owned lists the Shoots that belong to runtimes.
func (c *Client) Owned(ctx context.Context) ([]Owned, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	shoots := &gardencorev1beta1.ShootList{}
	if err := c.api.List(ctx, shoots, client.InNamespace(c.namespace)); err != nil {
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

// Delete confirms the deletion of the runtime's Shoot and asks for it. A Shoot that is gone, or of another runtime, is no error.
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

	err = c.api.Delete(ctx, existing, client.Preconditions{UID: &existing.UID})
	if err = explain(err, "deleting the Shoot %q", name); failure.Is(err, failure.NotFound) {
		return nil
	}

	return err
}

// Retry asks Gardener to go on with a Shoot whose last operation has failed.
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

	return explain(c.api.Patch(ctx, shoot, client.MergeFrom(before)), "annotating the Shoot %q", shoot.Name)
}

// AdminKubeconfig has Gardener make a kubeconfig for administrators that is valid for the duration, 10 minutes at least.
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

	if err := c.api.SubResource("adminkubeconfig").Create(ctx, shoot, request); err != nil {
		return nil, explain(err, "asking for the kubeconfig of the Shoot %q", name)
	}

	return request.Status.Kubeconfig, nil
}
