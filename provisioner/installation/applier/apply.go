package applier

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// concurrency is the number of objects that are compared with the cluster at the same time.
const concurrency = 4

// intend stores the objects of a component before the first of them is applied, so that a crash leaves no unknown object. It writes even if
// nothing is new: the write fails if another replica has changed the inventory since it was read.
func (w *work) intend(ctx context.Context, entry *entry, refs []ref) error {
	entry.intend(refs)
	return w.store(ctx)
}

// apply applies the objects of a component in two waves: first those that others depend on (namespaces, definitions of kinds, cluster
// roles and classes), then, once these are ready, the rest. waiting names an object that is not ready.
func (w *work) apply(ctx context.Context, objects []*unstructured.Unstructured) (waiting string, err error) {
	var base, rest []*unstructured.Unstructured

	var refs []ref

	for _, object := range objects {
		if ref := refOf(object); ref.isBase() {
			base, refs = append(base, object), append(refs, ref)
		} else {
			rest = append(rest, object)
		}
	}

	if waiting, err := w.applyAll(ctx, base); err != nil || waiting != "" {
		return waiting, err
	}

	if waiting, _, err := w.health(ctx, refs); err != nil || waiting != "" {
		return waiting, err
	}

	return w.applyAll(ctx, rest)
}

// applyAll applies those objects that differ from the cluster, by kind. All of them pass a dry run before the first one is written, so
// that a release with an invalid object changes nothing. An object of which an immutable field differs is deleted if it is annotated with
// AnnotationRecreate; the next call creates it again.
func (w *work) applyAll(ctx context.Context, objects []*unstructured.Unstructured) (waiting string, err error) {
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
		first, second := refOf(a), refOf(b)

		return cmp.Or(compareKinds(first, second), cmp.Compare(first.String(), second.String()))
	})

	changed := make([]bool, len(objects))
	group, dryRun := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)

	for i, object := range objects {
		group.Go(func() (err error) {
			changed[i], err = w.differs(dryRun, object)

			return err
		})
	}

	if err := group.Wait(); err != nil {
		return w.resolve(ctx, err)
	}

	for i, object := range objects {
		if !changed[i] {
			continue
		}

		if err := w.serverSideApply(ctx, object); err != nil {
			return w.resolve(ctx, err)
		}
	}

	return "", nil
}

// differs reports whether applying the object would change the cluster, by a dry run. Status and metadata other than labels and
// annotations do not count.
func (w *work) differs(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	dropInvalidCABundle(object)

	present := &unstructured.Unstructured{}
	present.SetGroupVersionKind(object.GroupVersionKind())

	if err := w.client.Get(ctx, client.ObjectKeyFromObject(object), present); ignoreGone(err) != nil {
		return false, &objectError{ref: refOf(object), cause: err}
	}

	applied := object.DeepCopy()
	if err := w.serverSideApply(ctx, applied, client.DryRunAll); err != nil {
		return false, err
	}

	return !equality.Semantic.DeepEqual(relevant(present), relevant(applied)), nil
}

// relevant returns what differs compares. An object that does not exist has nothing of it.
func relevant(object *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(object.Object)
	delete(fields, "status")

	fields["metadata"] = []map[string]string{object.GetLabels(), object.GetAnnotations()}

	return fields
}

// serverSideApply takes over fields that another manager owns: the release decides.
func (w *work) serverSideApply(ctx context.Context, object *unstructured.Unstructured, options ...client.ApplyOption) error {
	options = append(options, client.ForceOwnership, client.FieldOwner(FieldManager))

	err := w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
	if err == nil {
		return nil
	}

	return &objectError{ref: refOf(object), recreate: object.GetAnnotations()[AnnotationRecreate] == "true", cause: err}
}

// resolve handles the errors of a dry run that say what to do: wait until a namespace is gone, or delete an object that cannot be changed
// in place.
func (w *work) resolve(ctx context.Context, err error) (waiting string, _ error) {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return "waiting until its namespace, which is being deleted, is gone", nil
	}

	object, ok := errors.AsType[*objectError](err)
	if !ok || !immutable(object.cause) || !object.recreate {
		return "", err
	}

	if _, err := w.remove(ctx, []ref{object.ref}); err != nil {
		return "", err
	}

	return fmt.Sprintf("%s is deleted and created again, because a changed field is immutable", object.ref), nil
}

// dropInvalidCABundle removes the CA bundle of a definition's conversion webhook if it holds no certificate. Releases have a placeholder
// there, which a controller replaces; API servers from Kubernetes 1.31 on reject it.
func dropInvalidCABundle(object *unstructured.Unstructured) {
	path := []string{"spec", "conversion", "webhook", "clientConfig", "caBundle"}

	bundle, found, err := unstructured.NestedString(object.Object, path...)
	if !refOf(object).isDefinition() || !found || err != nil {
		return
	}

	if decoded, err := base64.StdEncoding.DecodeString(bundle); err == nil {
		if _, err := cert.ParseCertsPEM(decoded); err == nil {
			return
		}
	}

	unstructured.RemoveNestedField(object.Object, path...)
}

// kindsFirst lists the kinds that are applied first, in this order: kinds that others refer to, then identities and permissions,
// configuration, and workloads.
func kindsFirst() []string {
	return []string{
		"CustomResourceDefinition", "Namespace",
		"PriorityClass", "RuntimeClass", "StorageClass", "VolumeSnapshotClass", "IngressClass", "GatewayClass",
		"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
		"ResourceQuota", "LimitRange", "ConfigMap", "Secret", "Service",
		"Deployment", "StatefulSet", "CronJob", "PodDisruptionBudget",
	}
}

// kindsLast lists the kinds that are applied after all others: a webhook whose server does not run yet would reject the objects after it.
func kindsLast() []string {
	return []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
}

// compareKinds orders objects by kind.
func compareKinds(a, b ref) int {
	rank := func(kind string) int {
		if i := slices.Index(kindsFirst(), kind); i >= 0 {
			return i - len(kindsFirst())
		}

		return slices.Index(kindsLast(), kind) + 1
	}

	return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
}
