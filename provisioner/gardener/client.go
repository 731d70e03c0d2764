package gardener

import (
	"cmp"
	"context"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

const (
	// confirmDeletion is the annotation that Gardener requires on a Shoot before its deletion.
	confirmDeletion = "confirmation.gardener.cloud/deletion"

	// callTimeout bounds one method call, which may consist of several requests.
	callTimeout = 30 * time.Second

	// deleteAttempts is how often a deletion is tried if Gardener changes the Shoot, for example its status, at the same time.
	deleteAttempts = 5
)

// Client manages the Shoots of one Gardener project. It is safe for concurrent use. Errors come from package failure.
type Client struct {
	// connection returns the current connection, which Follow replaces when the credentials change.
	connection func() connection
	namespace  string
}

// New returns a client for the namespace of a project. Its connection never changes.
func New(api client.WithWatch, namespace string) *Client {
	return &Client{connection: func() connection { return connection{WithWatch: api, replaced: context.Background()} }, namespace: namespace}
}

// Get returns the Shoot with the given name, or a failure.NotFound error.
func (c *Client) Get(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	shoot := &gardencorev1beta1.Shoot{}
	if err := c.connection().Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, shoot); err != nil {
		return nil, explain(err, "reading the Shoot %q", name)
	}

	return shoot, nil
}

// list reads the objects in the project's namespace into the given list.
func (c *Client) list(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return c.connection().List(ctx, into, append(options, client.InNamespace(c.namespace))...)
}

// Probe lists a single Shoot, which tests the connection, the credentials and the permissions. The circuit breaker calls it to
// detect recovery.
func (c *Client) Probe(ctx context.Context) error {
	return explain(c.list(ctx, &gardencorev1beta1.ShootList{}, client.Limit(1)), "listing one Shoot")
}

// Owned is a Shoot that belongs to a runtime.
type Owned struct {
	Name, RuntimeID string
	// Tenant is the ID of the account, from shoot.AnnotationAccount or, if the ID is a valid label, from shoot.LabelAccount.
	Tenant string
	// InstanceID and Record are the values of shoot.AnnotationInstanceID and shoot.AnnotationRecord, or empty.
	InstanceID, Record string
	// Deleting reports that Gardener is deleting the Shoot. Ready reports that Gardener's last operation on the Shoot has
	// succeeded. Asleep reports that the spec of the Shoot requests hibernation.
	Deleting, Ready, Asleep bool
}

// Owned lists the Shoots that belong to runtimes. It omits Shoots without AnnotationRuntimeID, which other clients of the project
// have created.
func (c *Client) Owned(ctx context.Context) ([]Owned, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	shoots := &gardencorev1beta1.ShootList{}
	if err := c.list(ctx, shoots); err != nil {
		return nil, explain(err, "listing Shoots")
	}

	var owned []Owned

	for i := range shoots.Items {
		if each := &shoots.Items[i]; each.Annotations[shoot.AnnotationRuntimeID] != "" {
			owned = append(owned, OwnedOf(each))
		}
	}

	return owned, nil
}

// OwnedOf converts a Shoot to an Owned.
func OwnedOf(each *gardencorev1beta1.Shoot) Owned {
	last := each.Status.LastOperation

	return Owned{
		Name: each.Name, RuntimeID: each.Annotations[shoot.AnnotationRuntimeID],
		Tenant: cmp.Or(each.Annotations[shoot.AnnotationAccount], each.Labels[shoot.LabelAccount]),
		Record: each.Annotations[shoot.AnnotationRecord],

		InstanceID: each.Annotations[shoot.AnnotationInstanceID],
		Deleting:   each.DeletionTimestamp != nil,
		Ready:      last != nil && last.State == gardencorev1beta1.LastOperationStateSucceeded,
		Asleep:     shoot.ToSleep(each),
	}
}

// OfRuntime returns the name of the runtime's Shoot, or "" if there is none. It compares AnnotationRuntimeID of all Shoots in
// the project, because Shoots of Kyma Provisioner do not have LabelRuntimeID.
func (c *Client) OfRuntime(ctx context.Context, runtimeID string) (string, error) {
	owned, err := c.Owned(ctx)
	if err != nil {
		return "", err
	}

	for _, each := range owned {
		if each.RuntimeID == runtimeID {
			return each.Name, nil
		}
	}

	return "", nil
}

// Delete requests the deletion of the runtime's Shoot, which takes Gardener a few minutes. Callers may repeat it: it succeeds if
// the Shoot does not exist, or if its name now belongs to another runtime's Shoot. It fails with failure.Transient if the Shoot
// keeps changing during the call.
func (c *Client) Delete(ctx context.Context, name, runtimeID string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	var err error

	for range deleteAttempts {
		if err = c.tryDelete(ctx, name, runtimeID); !apierrors.IsConflict(err) {
			return err
		}
	}

	return err
}

// tryDelete is Delete, but fails with a conflict if the Shoot changes after tryDelete has read it.
func (c *Client) tryDelete(ctx context.Context, name, runtimeID string) error {
	existing, err := c.Get(ctx, name)
	if failure.Is(err, failure.NotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	if existing.Annotations[shoot.AnnotationRuntimeID] != runtimeID {
		return nil
	}

	if err := c.annotate(ctx, existing, confirmDeletion, "true", client.MergeFromWithOptimisticLock{}); err != nil {
		return err
	}

	if existing.DeletionTimestamp != nil {
		return nil
	}

	// In the meantime, a Shoot of another runtime may have been created under this name. The patch fails if the Shoot has changed, and the
	// deletion if it has another UID.
	err = c.connection().Delete(ctx, existing, client.Preconditions{UID: &existing.UID})
	if err = explain(err, "deleting the Shoot %q", name); failure.Is(err, failure.NotFound) {
		return nil
	}

	return err
}

// Retry requests a retry of a Shoot's failed last operation. It sets an annotation, which Gardener removes when the retry
// starts. Until then, repeated calls change nothing.
func (c *Client) Retry(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	return c.annotate(ctx, shoot, v1beta1constants.GardenerOperation, v1beta1constants.ShootOperationRetry)
}

// annotate patches the Shoot to set an annotation. It sends no request if the annotation already has this value.
func (c *Client) annotate(ctx context.Context, shoot *gardencorev1beta1.Shoot, key, value string, options ...client.MergeFromOption) error {
	if shoot.Annotations[key] == value {
		return nil
	}

	before := shoot.DeepCopy()
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, key, value)

	patch := client.MergeFromWithOptions(before, options...)

	return explain(c.connection().Patch(ctx, shoot, patch), "annotating the Shoot %q", shoot.Name)
}
