package gardener

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	// adoptedManager is the new name of Kyma Provisioner's field manager in an adopted Shoot. This manager keeps its fields, so this
	// Provisioner's applies do not remove them.
	adoptedManager = "former-provisioner"
	// adopter is the field manager of the patch that adopts a Shoot.
	adopter = "environment-broker-adopt"
)

// step is one operation of a JSON patch.
type step struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Adopt prepares a Shoot of Kyma Provisioner for changes by this Provisioner: it replaces the SecretBinding with the named
// CredentialsBinding, and renames Kyma Provisioner's field manager. A single patch does both. It fails with failure.Transient if
// the Shoot has changed since it was read. If there is nothing to change, Adopt sends no request and returns false.
func (c *Client) Adopt(ctx context.Context, read *gardencorev1beta1.Shoot, binding string) (bool, error) {
	return c.patch(ctx, read, adoption(read, binding))
}

// Claim does the same as Adopt, but for a Shoot that any program may have created. It also sets the labels and annotations that
// identify the owner.
func (c *Client) Claim(ctx context.Context, read *gardencorev1beta1.Shoot, binding string, owner metav1.ObjectMeta) (bool, error) {
	steps := adoption(read, binding)
	steps = append(steps, set("/metadata/labels", read.Labels, owner.Labels)...)
	steps = append(steps, set("/metadata/annotations", read.Annotations, owner.Annotations)...)

	return c.patch(ctx, read, steps)
}

// set returns the patch steps that set the wanted entries of the map at path, sorted by key. Entries that already have the wanted
// value need no step.
func set(path string, present, wanted map[string]string) []step {
	var steps []step

	if present == nil && len(wanted) > 0 {
		steps = append(steps, step{Op: "add", Path: path, Value: map[string]string{}})
	}

	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if present[name] != wanted[name] {
			steps = append(steps, step{Op: "add", Path: path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name), Value: wanted[name]})
		}
	}

	return steps
}

// patch applies the steps. It fails with failure.Transient if the Shoot has changed since it was read. If there are no steps, it
// sends no request and returns false.
func (c *Client) patch(ctx context.Context, read *gardencorev1beta1.Shoot, steps []step) (bool, error) {
	if len(steps) == 0 {
		return false, nil
	}

	guard := step{Op: "test", Path: "/metadata/resourceVersion", Value: read.ResourceVersion}

	patch, err := json.Marshal(append([]step{guard}, steps...))
	if err != nil {
		return false, failure.While(err, "encoding a patch")
	}

	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	target := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: read.Name}}
	err = c.connection().Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(adopter))
	if apierrors.IsInvalid(err) && c.changed(ctx, read) {
		// If the test in a JSON patch fails, API servers report the object as invalid.
		err = apierrors.NewConflict(gardencorev1beta1.Resource("shoots"), read.Name, err)
	}

	return err == nil, explain(err, "adopting the Shoot %q", read.Name)
}

// changed reports whether the Shoot has changed since it was read. It returns false if the Shoot cannot be read.
func (c *Client) changed(ctx context.Context, read *gardencorev1beta1.Shoot) bool {
	present, err := c.Get(ctx, read.Name)

	return err == nil && present.ResourceVersion != read.ResourceVersion
}

// ToAdopt reports whether Adopt would change the Shoot.
func ToAdopt(read *gardencorev1beta1.Shoot, binding string) bool {
	return len(adoption(read, binding)) > 0
}

// adoption returns the steps of Adopt, or nil if there is nothing to change.
func adoption(read *gardencorev1beta1.Shoot, binding string) []step {
	var steps []step

	if ptr.Deref(read.Spec.SecretBindingName, "") != "" { //nolint:staticcheck // Kyma Provisioner sets the deprecated field.
		steps = append(steps, step{Op: "remove", Path: "/spec/secretBindingName"}, step{Op: "add", Path: "/spec/credentialsBindingName", Value: binding})
	}

	former := slices.IndexFunc(read.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == formerManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
	})
	if former >= 0 {
		steps = append(steps, step{Op: "replace", Path: fmt.Sprintf("/metadata/managedFields/%d/manager", former), Value: adoptedManager})
	}

	return steps
}

// CheckBindings checks whether the Shoot can use the CredentialsBinding that an order names. If the Shoot has a SecretBinding,
// both bindings must refer to the same Secret. If it has no SecretBinding, it must already use this CredentialsBinding. If the
// check fails, the error is failure.Permanent and names the objects that differ or are missing.
func (c *Client) CheckBindings(ctx context.Context, read *gardencorev1beta1.Shoot, binding string) error {
	former := ptr.Deref(read.Spec.SecretBindingName, "") //nolint:staticcheck // Kyma Provisioner sets the deprecated field.
	if former == "" {
		if present := ptr.Deref(read.Spec.CredentialsBindingName, ""); present != binding {
			return failure.New(failure.Permanent, "the Shoot uses the CredentialsBinding %q, but the order names %q", present, binding)
		}

		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	secretBinding := &gardencorev1beta1.SecretBinding{} //nolint:staticcheck // Kyma Provisioner uses it.
	if err := c.connection().Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: former}, secretBinding); err != nil {
		return explain(err, "reading the SecretBinding %q", former)
	}

	credentials := &securityv1alpha1.CredentialsBinding{}

	err := explain(c.connection().Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: binding}, credentials), "reading the CredentialsBinding %q", binding)
	if failure.Is(err, failure.NotFound) {
		return failure.New(failure.Permanent, "there is no CredentialsBinding %q: create one that refers to the Secret %s/%s",
			binding, secretBinding.SecretRef.Namespace, secretBinding.SecretRef.Name)
	}

	if err != nil {
		return err
	}

	if reference := credentials.CredentialsRef; reference.Kind != "Secret" || reference.Namespace != secretBinding.SecretRef.Namespace ||
		reference.Name != secretBinding.SecretRef.Name {
		return failure.New(failure.Permanent, "the CredentialsBinding %q refers to the %s %s/%s, but the SecretBinding %q refers to the Secret %s/%s",
			binding, reference.Kind, reference.Namespace, reference.Name, former, secretBinding.SecretRef.Namespace, secretBinding.SecretRef.Name)
	}

	return nil
}

// CheckSecret returns a failure.NotFound error if the project's namespace has no Secret with the given name. It reads only
// metadata.
func (c *Client) CheckSecret(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))

	return explain(c.connection().Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, metadata), "reading the Secret %q", name)
}
