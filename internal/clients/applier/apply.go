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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

// concurrency is the maximum number of concurrent API calls for the objects of one owner. It limits the load on the API server of
// a small cluster.
const concurrency = 8

// part applies one part and, if the content requires it, checks its health. waiting is "" if the part is ready. Otherwise it names the
// object that is not ready, and the next call continues. The inventory lists the objects before they are applied and marks the part as
// applied only afterwards, so no object is lost in a crash.
func (w *work) part(ctx context.Context, part Part, content Content) (waiting string, err error) {
	digest, err := part.Source.Digest(ctx)
	if err != nil {
		return "", err
	}

	entry := w.inventory.entry(part.Name)
	if entry.Applied == digest && entry.Ready {
		w.skipped = true

		return "", nil
	}

	if entry.Applied != digest {
		waiting, err := w.applyPart(ctx, part, entry, content.SkipUnchanged)
		if err != nil || waiting != "" {
			return waiting, err
		}

		entry.Applied = digest
		w.changed = true
	}

	if content.AwaitHealth {
		waiting, missing, err := w.health(ctx, entry.Objects)
		// Somebody has deleted an object since it was applied. The next call applies the part again.
		if missing {
			entry.Applied = ""
			w.changed = true
		}

		if err != nil || waiting != "" {
			return waiting, err
		}
	}

	entry.Ready, w.changed = true, true

	return "", nil
}

// applyPart records the objects of a part in the inventory and applies them. If skip is true and applying the objects would
// change nothing on the cluster, it does neither.
func (w *work) applyPart(ctx context.Context, part Part, entry *entry, skip bool) (waiting string, err error) {
	content, unknown, err := w.prepare(ctx, part)
	if err != nil || unknown != "" {
		return unknown, err
	}

	var known comparison

	if skip && entry.lists(content.refs) {
		known, err = w.compare(ctx, content.objects)
		if err != nil {
			known = nil // apply then compares each wave itself, and handles the errors of objects
		} else if !known.differs(content.objects) {
			return "", nil
		}
	}

	if err := w.intend(ctx, entry, content.refs); err != nil {
		return "", err
	}

	return w.apply(ctx, content.objects, known)
}

// intend stores the names of a part's objects before any of them is applied. It writes even if the inventory already contains
// them, because the write also stops a replica that has lost its lease: the write fails if another replica has changed the
// inventory.
func (w *work) intend(ctx context.Context, entry *entry, refs []ref) error {
	entry.intend(refs)
	return w.store(ctx)
}

// apply applies the objects of a part in two waves. The first wave contains the objects that others depend on: namespaces,
// CustomResourceDefinitions, cluster roles and classes. The second wave starts when all of these are ready. If an object is not
// ready yet, waiting names it. known is the comparison of all objects, or nil. If the first wave changes something, known is not
// valid for the second wave, because a new CustomResourceDefinition can change the result for the objects of its kind.
func (w *work) apply(ctx context.Context, objects []*unstructured.Unstructured, known comparison) (waiting string, err error) {
	base, rest := waves(objects)

	refs := make([]ref, 0, len(base))
	for _, object := range base {
		refs = append(refs, refOf(object))
	}

	if waiting, err := w.applyAll(ctx, base, known); err != nil || waiting != "" {
		return waiting, err
	}

	if waiting, _, err := w.health(ctx, refs); err != nil || waiting != "" {
		return waiting, err
	}

	if known.differs(base) {
		known = nil
	}

	return w.applyAll(ctx, rest, known)
}

// waves separates the objects of the first wave from the rest. An object whose definition is in the first wave belongs to the rest, because the
// API server accepts it only after its definition.
func waves(objects []*unstructured.Unstructured) (base, rest []*unstructured.Unstructured) {
	defined := definitions(objects)

	for _, object := range objects {
		one := refOf(object)
		if _, late := defined[one.kind().GroupKind()]; one.isBase() && !late {
			base = append(base, object)
		} else {
			rest = append(rest, object)
		}
	}

	return base, rest
}

// applyAll applies the objects that differ from their state on the cluster, in the order of their kinds. All objects must pass a
// dry run first, so that a release with an invalid object changes nothing. The dry run is skipped if known contains its result.
// An object with AnnotationRecreate and a changed immutable field is deleted; the next call creates it again.
func (w *work) applyAll(ctx context.Context, objects []*unstructured.Unstructured, known comparison) (waiting string, err error) {
	if known == nil {
		if known, err = w.compare(ctx, objects); err != nil {
			return w.resolve(ctx, err)
		}
	}

	changed := slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool { return !known[object] })
	slices.SortFunc(changed, func(a, b *unstructured.Unstructured) int {
		first, second := refOf(a), refOf(b)

		return cmp.Or(compareKinds(first, second), cmp.Compare(first.String(), second.String()))
	})

	for len(changed) > 0 {
		first := refOf(changed[0])

		end := slices.IndexFunc(changed, func(object *unstructured.Unstructured) bool { return compareKinds(first, refOf(object)) != 0 })
		if end < 0 {
			end = len(changed)
		}

		if err := w.applyKind(ctx, changed[:end]); err != nil {
			return w.resolve(ctx, err)
		}

		changed = changed[end:]
	}

	return "", nil
}

// applyKind applies objects of one kind, several of them concurrently. After a failure, it does not start further calls, but
// waits for the calls in progress: a canceled call could take effect after the caller has begun to restore the earlier content.
func (w *work) applyKind(ctx context.Context, objects []*unstructured.Unstructured) error {
	return lifecycle.Each(concurrency, objects, func(object *unstructured.Unstructured) error {
		if err := w.serverSideApply(ctx, object); err != nil {
			return err
		}

		w.see(object)

		return nil
	})
}

// comparison reports, for each object, whether applying it would change the cluster.
type comparison map[*unstructured.Unstructured]bool

// differs reports whether applying any of the objects would change the cluster.
func (c comparison) differs(objects []*unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool { return c[object] })
}

// compare reports for each object whether applying it would change the cluster.
func (w *work) compare(ctx context.Context, objects []*unstructured.Unstructured) (comparison, error) {
	present := w.present(ctx, objects)
	changed := make([]bool, len(objects))
	group, dryRun := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)

	for i, object := range objects {
		group.Go(func() (err error) {
			changed[i], err = w.differs(dryRun, object, present[refOf(object)])

			return err
		})
	}

	if err := group.Wait(); err != nil {
		return nil, err //nolint:wrapcheck // it already names the object
	}

	result := comparison{}
	for i, object := range objects {
		result[object] = changed[i]
	}

	return result, nil
}

// differs reports whether applying the object would change the cluster. The comparison avoids writing unchanged objects, which would
// needlessly trigger controllers and webhooks. present is the current object if it has already been read, or nil.
func (w *work) differs(ctx context.Context, object, present *unstructured.Unstructured) (bool, error) {
	if present == nil {
		var err error
		if present, err = w.read(ctx, object); err != nil {
			return false, w.objectError(object, err)
		}
	}

	applied, err := w.dryRun(ctx, object, present)
	if err != nil {
		return false, err
	}

	changed := changes(present, applied) || w.owner.ownsStringData(present)
	if !changed {
		w.see(present)
	}

	return changed, nil
}

// dryRun applies the object as a dry run and returns the result. It fails if the owner must not apply the object. present is the
// current object; its UID is empty if the object does not exist. dryRun first removes fields from object that must not be
// applied: see dropInvalidCABundle and leaveReplicas.
func (w *work) dryRun(ctx context.Context, object, present *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	dropInvalidCABundle(object)

	if present.GetUID() != "" {
		if !w.owner.mayApply(present) {
			return nil, w.collision(present)
		}

		if err := w.leaveReplicas(ctx, object, present); err != nil {
			return nil, w.objectError(object, err)
		}

		if w.checkDefinition != nil && refOf(object).isDefinition() {
			if err := w.checkDefinition(ctx, w.client, present, object); err != nil {
				return nil, err
			}
		}
	}

	applied := object.DeepCopy()

	return applied, w.serverSideApply(ctx, applied, client.DryRunAll)
}

// changes reports whether two states of an object differ in relevant fields.
func changes(present, applied *unstructured.Unstructured) bool {
	return !equality.Semantic.DeepEqual(relevant(present), relevant(applied))
}

// relevant returns the fields to compare: labels, annotations, finalizers, owner references, and everything outside metadata and status. The
// API server sets the other fields.
func relevant(object *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(object.Object)
	delete(fields, "status")

	fields["metadata"] = []any{object.GetLabels(), object.GetAnnotations(), object.GetFinalizers(), object.GetOwnerReferences()}

	return fields
}

// serverSideApply applies the object. It takes ownership of fields that another field manager owns, because the content
// determines their values.
func (w *work) serverSideApply(ctx context.Context, object *unstructured.Unstructured, options ...client.ApplyOption) error {
	options = append(options, client.ForceOwnership, client.FieldOwner(w.owner.manager))

	err := w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
	if err == nil {
		return nil
	}

	return w.objectError(object, err)
}

// resolve handles those errors of applyAll after which the installation can continue. If a namespace is being deleted, or if the
// cluster does not serve a version of a kind that the part defines, waiting says so. If an object may be recreated, resolve deletes
// the object, unless it must be kept, and the next call creates it again. It returns all other errors unchanged.
func (w *work) resolve(ctx context.Context, err error) (waiting string, _ error) {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return "waiting until the namespace of an object is deleted", nil
	}

	object, ok := errors.AsType[*objectError](err)
	if ok && meta.IsNoMatchError(object.cause) {
		return unserved(object.ref), nil
	}

	if !ok || !immutable(object.cause) || !object.recreate {
		return "", err
	}

	present := object.ref.bare()
	if err := w.client.Get(ctx, object.ref.key(), present); ignoreGone(err) != nil {
		return "", err
	}

	if present.Annotations[AnnotationPolicy] == policyKeep { // delete would skip it
		object.kept = true

		return "", object
	}

	if _, err := w.remove(ctx, []ref{object.ref}); err != nil {
		return "", err
	}

	return fmt.Sprintf("%s is being recreated, because a changed field is immutable", object.ref), nil
}

// dropInvalidCABundle removes the CA bundles of a definition's conversion webhook and of the webhooks in a configuration unless they
// contain a certificate. Releases contain a placeholder there, which a controller replaces later. Since Kubernetes 1.31 the API server
// rejects such a placeholder in a definition. In a configuration, each apply of the placeholder would remove the certificate.
func dropInvalidCABundle(object *unstructured.Unstructured) {
	if refOf(object).isDefinition() {
		dropUnlessCertificate(object.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	}

	if !slices.Contains(kindsLast(), object.GetKind()) {
		return
	}

	webhooks, _ := object.Object["webhooks"].([]any)
	for _, each := range webhooks {
		if webhook, ok := each.(map[string]any); ok {
			dropUnlessCertificate(webhook, "clientConfig", "caBundle")
		}
	}
}

// dropUnlessCertificate removes the field unless it contains a certificate.
func dropUnlessCertificate(fields map[string]any, path ...string) {
	bundle, found, err := unstructured.NestedString(fields, path...)
	if !found || err != nil {
		return
	}

	if decoded, err := base64.StdEncoding.DecodeString(bundle); err == nil {
		if _, err := cert.ParseCertsPEM(decoded); err == nil {
			return
		}
	}

	unstructured.RemoveNestedField(fields, path...)
}

// kindsFirst lists the kinds that are applied first, in this order: kinds that other objects need, then identities and
// permissions, configuration, and workloads.
func kindsFirst() []string {
	return []string{
		"CustomResourceDefinition", "Namespace",
		"PriorityClass", "RuntimeClass", "StorageClass", "VolumeSnapshotClass", "IngressClass", "GatewayClass",
		"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
		"ResourceQuota", "LimitRange", "ConfigMap", "Secret", "Service",
		"Deployment", "StatefulSet", "CronJob", "PodDisruptionBudget",
	}
}

// kindsLast lists the kinds that are applied after all others. They are webhook configurations: a webhook whose server is not
// running yet rejects the objects that are applied after it.
func kindsLast() []string {
	return []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
}

// compareKinds orders objects by their kind: kindsFirst, then all other kinds by name, then kindsLast.
func compareKinds(a, b ref) int {
	rank := func(kind string) int {
		if i := slices.Index(kindsFirst(), kind); i >= 0 {
			return i - len(kindsFirst())
		}

		return slices.Index(kindsLast(), kind) + 1
	}

	return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
}
