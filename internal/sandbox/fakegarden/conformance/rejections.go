package conformance

import (
	"context"
	"strings"
	"testing"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

// rejection is a request that a garden refuses.
type rejection struct {
	name string
	// reason says why a garden refuses it.
	reason string
	// request makes the request; shoot exists, its runtime does not yet.
	request func(ctx context.Context, g Garden, shoot *gardencorev1beta1.Shoot) error
	want    metav1.StatusReason
	// text is a part of the message.
	text string
}

// Rejections sends what a garden has to refuse, and checks that it does so as Gardener's API server does.
func Rejections(t *testing.T, g Garden) {
	ctx := t.Context()
	const name = "rejected"
	g.orderFault(ctx, t, gardenlet.FaultsConfigMap, name, string(gardenlet.FaultStuck))
	g.apply(ctx, t, Shoot(g.Namespace, name))
	g.await(ctx, t, name, "its creation has begun", unobserved, func(shoot *gardencorev1beta1.Shoot) bool {
		return shoot.Status.LastOperation != nil
	})
	for _, rejection := range append(refusedShoots(), append(refusedChanges(), refusedRequests()...)...) {
		t.Run(rejection.name, func(t *testing.T) {
			err := rejection.request(t.Context(), g, g.get(t.Context(), t, name))
			if got := apierrors.ReasonForError(err); err == nil || got != rejection.want || !strings.Contains(err.Error(), rejection.text) {
				t.Errorf("must be refused, because %s\n got: %q %v\nwant: %q …%s…", rejection.reason, got, err, rejection.want, rejection.text)
			}
		})
	}
	g.remove(ctx, t, name, unobserved)
}

// creating returns the request to create an acceptable Shoot after a change that makes it unacceptable.
func creating(spoil func(*gardencorev1beta1.Shoot)) func(context.Context, Garden, *gardencorev1beta1.Shoot) error {
	return func(ctx context.Context, g Garden, _ *gardencorev1beta1.Shoot) error {
		shoot := Shoot(g.Namespace, "refused")
		spoil(shoot)
		return g.Client.Create(ctx, shoot)
	}
}

// updating returns the request to change an existing Shoot in an unacceptable way.
func updating(spoil func(*gardencorev1beta1.Shoot)) func(context.Context, Garden, *gardencorev1beta1.Shoot) error {
	return func(ctx context.Context, g Garden, shoot *gardencorev1beta1.Shoot) error {
		before := shoot.DeepCopy()
		spoil(shoot)
		return g.Client.Patch(ctx, shoot, client.MergeFrom(before))
	}
}

func refusedChanges() []rejection {
	return []rejection{
		{
			name:    "other region",
			reason:  "a runtime cannot move",
			request: updating(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Region = "eu-west-1" }),
			want:    metav1.StatusReasonInvalid,
			text:    "spec.region: Invalid value",
		},
		{
			name:    "older Kubernetes",
			reason:  "Kubernetes cannot be downgraded",
			request: updating(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Kubernetes.Version = "1.35.2" }),
			want:    metav1.StatusReasonInvalid,
			text:    "kubernetes version downgrade is not supported",
		},
		{
			name:    "other network",
			reason:  "the network plugin of a runtime is chosen once",
			request: updating(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Networking.Type = new("cilium") }),
			want:    metav1.StatusReasonInvalid,
			text:    "spec.networking.type: Invalid value",
		},
		{
			name:    "no credentials any more",
			reason:  "a runtime cannot lose its credentials",
			request: updating(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.CredentialsBindingName = nil }),
			want:    metav1.StatusReasonInvalid,
			text:    "spec.credentialsBindingName: Forbidden: the field cannot be unset",
		},
		{
			name:   "finalizer taken away",
			reason: "the gardenlet has not deleted the runtime yet",
			request: updating(func(shoot *gardencorev1beta1.Shoot) {
				shoot.Finalizers = nil
			}),
			want: metav1.StatusReasonForbidden,
			text: `finalizer "gardener" cannot be removed`,
		},
		{
			name:   "change of an old state",
			reason: "someone else has changed the shoot meanwhile",
			request: func(ctx context.Context, g Garden, shoot *gardencorev1beta1.Shoot) error {
				stale := shoot.DeepCopy()
				metav1.SetMetaDataLabel(&shoot.ObjectMeta, "changed", "first")
				if err := g.Client.Update(ctx, shoot); err != nil {
					return err
				}
				metav1.SetMetaDataLabel(&stale.ObjectMeta, "changed", "second")
				return g.Client.Update(ctx, stale)
			},
			want: metav1.StatusReasonConflict,
			text: "Operation cannot be fulfilled on shoots.core.gardener.cloud",
		},
	}
}

func refusedRequests() []rejection {
	return []rejection{
		{
			name:   "the same shoot again",
			reason: "the name is taken",
			request: func(ctx context.Context, g Garden, shoot *gardencorev1beta1.Shoot) error {
				return g.Client.Create(ctx, Shoot(g.Namespace, shoot.Name))
			},
			want: metav1.StatusReasonAlreadyExists,
			text: "already exists",
		},
		{
			name:   "deletion that is not confirmed",
			reason: "the annotation that confirms the deletion is missing",
			request: func(ctx context.Context, g Garden, shoot *gardencorev1beta1.Shoot) error {
				return g.Client.Delete(ctx, shoot)
			},
			want: metav1.StatusReasonForbidden,
			text: `must have a "confirmation.gardener.cloud/deletion" annotation to delete`,
		},
		{
			name:    "kubeconfig of a runtime that does not answer",
			reason:  "the runtime has no address yet",
			request: kubeconfigFor(3600),
			want:    metav1.StatusReasonInvalid,
			text:    "no suitable advertised address",
		},
		{
			name:    "kubeconfig for a moment",
			reason:  "ten minutes are the shortest",
			request: kubeconfigFor(599),
			want:    metav1.StatusReasonInvalid,
			text:    "may not specify a duration less than 10 minutes",
		},
		{
			name:   "kubeconfig of nobody",
			reason: "there is no such shoot",
			request: func(ctx context.Context, g Garden, _ *gardencorev1beta1.Shoot) error {
				return kubeconfigFor(600)(ctx, g, Shoot(g.Namespace, "nobody"))
			},
			want: metav1.StatusReasonNotFound,
			text: `"nobody" not found`,
		},
	}
}

func kubeconfigFor(seconds int64) func(context.Context, Garden, *gardencorev1beta1.Shoot) error {
	return func(ctx context.Context, g Garden, shoot *gardencorev1beta1.Shoot) error {
		return g.Client.SubResource("adminkubeconfig").Create(ctx, shoot, &authenticationv1alpha1.AdminKubeconfigRequest{
			Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: &seconds},
		})
	}
}
