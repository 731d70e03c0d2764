package bundles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/controller/ownwrites"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// Finalizer keeps a deleted Bundle until the current attempt to unpack it has been canceled and its upload has been removed,
// unless a rollback may need the upload.
const Finalizer = "core.rukpak.io/delete-cached-bundle"

const (
	// callTimeout limits the duration of a reconciliation, which consists of short calls to the API server.
	callTimeout = 30 * time.Second
	// maxMessage is the maximum length of a condition's message, in characters. The API server accepts 32 KiB.
	maxMessage = 4 << 10
	// action is the value of the action field in the events that the controller records.
	action = "Unpack"
	// waitingForWorker is the condition message of a Bundle while all workers are busy.
	waitingForWorker = "waiting for a free worker"
)

// reconciler writes the status of Bundles.
type reconciler struct {
	client   client.Client
	unpacker *Unpacker
	events   events.EventRecorder
	// contentURL returns the address of a Bundle's content.
	contentURL func(name string) string
	// uploadURL returns the address to which a Bundle's content is uploaded.
	uploadURL func(name string) string
	// cleanUp removes the files that the replica keeps for a deleted Bundle.
	cleanUp func(ctx context.Context, bundle *v1alpha1.Bundle) error
	// written records the last write to each Bundle, to detect that the cache does not contain this write yet.
	written ownwrites.Writes
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcile(ctx, request)
	if err != nil {
		return ownwrites.Retry(err)
	}

	return result, nil
}

// reconcile updates the status of a Bundle. If an attempt to unpack it is due, reconcile starts the attempt, but does not wait for
// the result.
func (r *reconciler) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	bundle := &v1alpha1.Bundle{}
	if err := r.client.Get(ctx, request.NamespacedName, bundle); err != nil {
		if apierrors.IsNotFound(err) {
			r.unpacker.forget(request.Name)
			r.written.Forget(request.Name)

			return reconcile.Result{}, nil
		}

		return reconcile.Result{}, fmt.Errorf("reading the Bundle: %w", err)
	}

	if _, ours := r.unpacker.formats[bundle.Spec.ProvisionerClassName]; !ours {
		return reconcile.Result{}, nil
	}

	if r.written.Missing(bundle) {
		return reconcile.Result{RequeueAfter: ownwrites.Pause}, nil
	}

	if !bundle.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.finalize(ctx, bundle)
	}

	if !controllerutil.ContainsFinalizer(bundle, Finalizer) {
		if err := r.setFinalizer(ctx, bundle, controllerutil.AddFinalizer); err != nil {
			return reconcile.Result{}, err
		}
	}

	former := bundle.DeepCopy()
	result, problem := r.observe(bundle)

	changed, err := r.writeStatus(ctx, former, bundle)
	if err != nil {
		return reconcile.Result{}, err
	}

	if problem != nil && changed {
		return result, reconcile.TerminalError(problem)
	}

	return result, nil
}

// observe sets the status according to the last attempt to unpack the Bundle, and starts an attempt if the content is missing. It
// returns an error only if a retry would not help.
func (r *reconciler) observe(bundle *v1alpha1.Bundle) (reconcile.Result, error) {
	status := &bundle.Status
	unpacked := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.TypeUnpacked)

	if bundle.Spec.Source.Type == v1alpha1.SourceTypeUpload {
		status.UploadURL = r.uploadURL(bundle.Name)
	}

	if unpacked && r.unpacker.options.Store.Has(status.Digest) {
		r.unpacker.forget(bundle.Name)
		r.succeed(bundle)

		return reconcile.Result{}, nil
	}

	attempt := r.unpacker.ensure(bundle)

	switch {
	case attempt.state != stateDone && unpacked:
		r.succeed(bundle) // other replicas may still have the content
	case attempt.state == stateQueued && attempt.failures > 0, attempt.state == stateRunning && attempt.failures > 0:
		r.keep(bundle) // the message of the last attempt is more useful than the current one
	case attempt.state == stateQueued:
		set(bundle, v1alpha1.PhasePending, metav1.ConditionFalse, v1alpha1.ReasonUnpackPending, waitingForWorker)
	case attempt.state == stateRunning:
		set(bundle, v1alpha1.PhaseUnpacking, metav1.ConditionFalse, v1alpha1.ReasonUnpacking, "fetching the content")
	case attempt.outcome.err != nil:
		return r.fail(bundle, attempt)
	case attempt.outcome.pending != "":
		status.ContentURL = ""
		set(bundle, v1alpha1.PhasePending, metav1.ConditionFalse, v1alpha1.ReasonUnpackPending, attempt.outcome.pending)
	default:
		status.ResolvedSource, status.Digest = attempt.outcome.pinned.DeepCopy(), attempt.outcome.digest
		r.succeed(bundle)
	}

	return reconcile.Result{}, nil
}

func (r *reconciler) succeed(bundle *v1alpha1.Bundle) {
	bundle.Status.ContentURL = r.contentURL(bundle.Name)
	set(bundle, v1alpha1.PhaseUnpacked, metav1.ConditionTrue, v1alpha1.ReasonUnpackSuccessful, "the content is unpacked: "+bundle.Status.Digest)
}

// keep leaves the Unpacked condition unchanged, except for its observed generation.
func (r *reconciler) keep(bundle *v1alpha1.Bundle) {
	if current := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.TypeUnpacked); current != nil {
		set(bundle, bundle.Status.Phase, current.Status, current.Reason, current.Message)

		return
	}

	set(bundle, v1alpha1.PhaseUnpacking, metav1.ConditionFalse, v1alpha1.ReasonUnpacking, "fetching the content")
}

// fail reports a failed attempt in the status. It keeps the digest and the resolved source of content that was lost, because the
// next attempt needs them.
func (r *reconciler) fail(bundle *v1alpha1.Bundle, attempt job) (reconcile.Result, error) {
	bundle.Status.ContentURL = ""
	if bundle.Status.Digest == "" {
		bundle.Status.ResolvedSource = nil
	}

	set(bundle, v1alpha1.PhaseFailing, metav1.ConditionFalse, cmp.Or(attempt.outcome.reason, v1alpha1.ReasonUnpackFailed), attempt.outcome.err.Error())

	if attempt.outcome.terminal {
		return reconcile.Result{}, attempt.outcome.err
	}

	return reconcile.Result{RequeueAfter: max(time.Until(attempt.retryAt), time.Millisecond)}, nil
}

// set sets the phase, the Unpacked condition and the observed generation.
func set(bundle *v1alpha1.Bundle, phase v1alpha1.Phase, status metav1.ConditionStatus, reason, message string) {
	// The API server stores valid UTF-8 only. Any other message would differ from the stored one, and be reported again and again.
	message = failure.Shorten(strings.ToValidUTF8(message, "\uFFFD"), maxMessage)

	bundle.Status.Phase, bundle.Status.ObservedGeneration = phase, bundle.Generation
	meta.SetStatusCondition(&bundle.Status.Conditions, metav1.Condition{
		Type: v1alpha1.TypeUnpacked, Status: status, Reason: reason, Message: message, ObservedGeneration: bundle.Generation,
	})
}

// writeStatus writes the status if it has changed, and records an event for each new result, but not for progress.
func (r *reconciler) writeStatus(ctx context.Context, former, bundle *v1alpha1.Bundle) (changed bool, err error) {
	if equality.Semantic.DeepEqual(former.Status, bundle.Status) {
		return false, nil
	}

	if err := r.client.Status().Update(ctx, bundle); err != nil {
		return false, fmt.Errorf("writing the status: %w", err)
	}

	r.written.Record(bundle)

	before := meta.FindStatusCondition(former.Status.Conditions, v1alpha1.TypeUnpacked)
	after := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.TypeUnpacked)

	same := before != nil && before.Reason == after.Reason && before.Message == after.Message
	if same || after.Reason == v1alpha1.ReasonUnpacking || after.Message == waitingForWorker {
		return true, nil
	}

	kind := corev1.EventTypeNormal
	if bundle.Status.Phase == v1alpha1.PhaseFailing {
		kind = corev1.EventTypeWarning
	}

	const maxNote = 1000 // the API server accepts 1024 bytes

	r.events.Eventf(bundle, nil, kind, after.Reason, action, "%s", strings.ToValidUTF8(after.Message[:min(len(after.Message), maxNote)], ""))

	return true, nil
}

// finalize cleans up after a deleted Bundle and removes the finalizer. The content stays in the store until a later sweep removes
// it.
func (r *reconciler) finalize(ctx context.Context, bundle *v1alpha1.Bundle) error {
	r.unpacker.forget(bundle.Name)

	if !controllerutil.ContainsFinalizer(bundle, Finalizer) {
		return nil
	}

	if err := r.cleanUp(ctx, bundle); err != nil {
		former := bundle.DeepCopy()
		bundle.Status.ContentURL, bundle.Status.ResolvedSource = "", nil
		set(bundle, v1alpha1.PhaseFailing, metav1.ConditionUnknown, v1alpha1.ReasonProcessingFinalizerFailed, "cleaning up: "+err.Error())
		_, statusErr := r.writeStatus(ctx, former, bundle)

		return errors.Join(fmt.Errorf("cleaning up: %w", err), statusErr)
	}

	return r.setFinalizer(ctx, bundle, controllerutil.RemoveFinalizer)
}

// setFinalizer patches the finalizers. The patch fails if the Bundle has changed since it was read, because it replaces the whole list.
func (r *reconciler) setFinalizer(ctx context.Context, bundle *v1alpha1.Bundle, change func(client.Object, string) bool) error {
	former := bundle.DeepCopy()
	change(bundle, Finalizer)

	err := r.client.Patch(ctx, bundle, client.MergeFromWithOptions(former, client.MergeFromWithOptimisticLock{}))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("changing the finalizer: %w", err)
	}

	r.written.Record(bundle)

	return nil
}
