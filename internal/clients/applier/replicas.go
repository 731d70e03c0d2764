package applier

import (
	"context"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaveReplicas removes spec.replicas from an object that a HorizontalPodAutoscaler scales. Otherwise, each apply would undo the
// scaling.
func (w *work) leaveReplicas(ctx context.Context, object, present *unstructured.Unstructured) error {
	// The managed fields show this even after the HorizontalPodAutoscaler was deleted.
	scaled := slices.ContainsFunc(present.GetManagedFields(), func(fields metav1.ManagedFieldsEntry) bool {
		return fields.Subresource == "scale" && fields.Manager == "kube-controller-manager"
	})
	if !scaled {
		return nil
	}

	scales, err := w.hasAutoscaler(ctx, refOf(present))
	if err == nil && scales {
		unstructured.RemoveNestedField(object.Object, "spec", "replicas")
	}

	return err
}

// hasAutoscaler reports whether a HorizontalPodAutoscaler scales the object. It ignores those that the applier is about to remove. It
// returns true if they may not be listed, or if one of the installed ones is missing, because the applier will create it again.
func (w *work) hasAutoscaler(ctx context.Context, scaled ref) (bool, error) {
	list := &autoscalingv2.HorizontalPodAutoscalerList{}
	if err := w.client.List(ctx, list, client.InNamespace(scaled.Namespace)); err != nil {
		return apierrors.IsForbidden(err), ignoreForbidden(ignoreGone(err))
	}

	var present []ref

	for _, autoscaler := range list.Items {
		this, target := autoscalerRef(autoscaler.Namespace, autoscaler.Name), autoscaler.Spec.ScaleTargetRef
		group, _ := schema.ParseGroupVersion(target.APIVersion) // the API server rejects invalid versions
		present = append(present, this)

		if target.Kind == scaled.Kind && target.Name == scaled.Name && group.Group == scaled.Group && !w.isFormer(this) {
			return true, nil
		}
	}

	return slices.ContainsFunc(w.inventory.Entries, func(one *entry) bool {
		return slices.ContainsFunc(one.Objects, func(installed ref) bool {
			return installed.sameObject(autoscalerRef(scaled.Namespace, installed.Name)) && !has(present, installed)
		})
	}), nil
}

func autoscalerRef(namespace, name string) ref {
	return ref{autoscalingv2.GroupName, "v2", "HorizontalPodAutoscaler", namespace, name}
}

// isFormer reports whether the object belongs to earlier content only.
func (w *work) isFormer(object ref) bool {
	return slices.ContainsFunc(w.inventory.Entries, func(one *entry) bool { return has(one.Former, object) })
}

// ignoreForbidden returns nil if the error means that a permission is missing.
func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}

	return err
}
