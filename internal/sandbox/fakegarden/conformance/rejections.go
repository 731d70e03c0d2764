package conformance

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"
	"testing"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

//go:embed rejections.yaml
var rejectionsText []byte

// rejection is a request that every garden rejects. The expected reason and text come from Gardener's API server: the tests of
// the local garden verify them, and the fake garden must return the same ones. Exactly one of Create, Update and request is set.
type rejection struct {
	Name   string
	Reason metav1.StatusReason
	// Text must occur in the error message.
	Text string
	// Create is a patch that makes a valid Shoot invalid before its creation. If a garden accepts the Shoot, the test fails and the
	// Shoot remains.
	Create jsonpatch.Patch
	// Update is a patch that makes the stored Shoot invalid. Only the changed fields are sent, as a merge patch, so that every
	// rejection has one cause.
	Update  jsonpatch.Patch
	request request
}

// request sends an invalid request and returns the garden's error. The Shoot exists, but FaultStuck keeps its creation in
// progress, so that its state does not change between two requests.
type request func(ctx context.Context, g Garden, shoot *gardencorev1beta1.Shoot) error

// Rejections sends invalid requests and checks that the garden rejects them with the errors of Gardener's API server. The invalid
// Shoots are in rejections.yaml; requests returns all other invalid requests. Users and the Provisioner see these errors, so both
// the reason and the text are compared.
func Rejections(t *testing.T, g Garden) {
	ctx := t.Context()
	var rejections []rejection
	if err := yaml.UnmarshalStrict(rejectionsText, &rejections); err != nil {
		t.Fatal(err)
	}
	const name = "rejected"
	g.injectFault(ctx, t, name, gardenlet.FaultStuck)
	g.apply(ctx, t, onlyCreated(Shoot(g.Namespace, name)))
	g.await(ctx, t, name, "its creation has started", nil, func(shoot *gardencorev1beta1.Shoot) bool {
		return shoot.Status.LastOperation != nil
	})
	for _, rejection := range append(rejections, requests()...) {
		t.Run(rejection.Name, func(t *testing.T) {
			err := rejection.send(t, g, g.get(t.Context(), t, name))
			if got := apierrors.ReasonForError(err); err == nil || got != rejection.Reason || !strings.Contains(err.Error(), rejection.Text) {
				t.Errorf("got:  %q %v\nwant: %q …%s…", got, err, rejection.Reason, rejection.Text)
			}
		})
	}
	g.remove(ctx, t, name, nil)
}

// send returns the garden's error, or nil if the garden accepts the request.
func (r rejection) send(t *testing.T, g Garden, stored *gardencorev1beta1.Shoot) error {
	t.Helper()
	switch {
	case r.Create != nil:
		return g.Client.Create(t.Context(), patchedShoot(t, Shoot(g.Namespace, "invalid"), r.Create))
	case r.Update != nil:
		return g.Client.Patch(t.Context(), patchedShoot(t, stored, r.Update), client.MergeFrom(stored))
	}
	return r.request(t.Context(), g, stored)
}

// patchedShoot returns a copy of a valid Shoot with the patch applied. If the patch does not apply or adds an unknown field, the
// test fails, because the garden would reject the Shoot for the wrong reason.
func patchedShoot(t *testing.T, valid *gardencorev1beta1.Shoot, patch jsonpatch.Patch) *gardencorev1beta1.Shoot {
	t.Helper()
	shoot := &gardencorev1beta1.Shoot{}
	content, err := json.Marshal(valid)
	if err == nil {
		content, err = patch.Apply(content)
	}
	if err == nil {
		err = yaml.UnmarshalStrict(content, shoot)
	}
	if err != nil {
		t.Fatalf("patching the shoot: %v", err)
	}
	return shoot
}

// onlyCreated sets a resource version that no stored Shoot has, as the Provisioner does for a creation.
func onlyCreated(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.Shoot {
	shoot.ResourceVersion = "1"
	return shoot
}

// requests returns invalid requests that a patch of a Shoot cannot express: an outdated change, a duplicate, an unconfirmed
// deletion, and requests for kubeconfigs.
func requests() []rejection {
	type shoot = gardencorev1beta1.Shoot
	return []rejection{
		{
			Name: "outdated resource version", Reason: metav1.StatusReasonConflict,
			Text: "Operation cannot be fulfilled on shoots.core.gardener.cloud",
			request: func(ctx context.Context, g Garden, shoot *shoot) error {
				stale := shoot.DeepCopy()
				metav1.SetMetaDataLabel(&shoot.ObjectMeta, "changed", "first")
				if err := g.Client.Update(ctx, shoot); err != nil {
					return err
				}
				metav1.SetMetaDataLabel(&stale.ObjectMeta, "changed", "second")
				return g.Client.Update(ctx, stale)
			},
		},
		{
			Name: "creation of an existing shoot", Reason: metav1.StatusReasonAlreadyExists, Text: "already exists",
			request: func(ctx context.Context, g Garden, shoot *shoot) error {
				return g.Client.Create(ctx, Shoot(g.Namespace, shoot.Name))
			},
		},
		{
			Name: "apply that may only create, to an existing shoot", Reason: metav1.StatusReasonConflict,
			Text: "Operation cannot be fulfilled on shoots.core.gardener.cloud",
			request: func(ctx context.Context, g Garden, shoot *shoot) error {
				return g.tryApply(ctx, onlyCreated(Shoot(g.Namespace, shoot.Name)))
			},
		},
		{
			Name: "unconfirmed deletion", Reason: metav1.StatusReasonForbidden,
			Text:    `must have a "confirmation.gardener.cloud/deletion" annotation to delete`,
			request: func(ctx context.Context, g Garden, shoot *shoot) error { return g.Client.Delete(ctx, shoot) },
		},
		{
			Name: "kubeconfig of a runtime without an address", Reason: metav1.StatusReasonInvalid,
			Text: "no suitable advertised address", request: kubeconfigFor(3600),
		},
		{
			Name: "kubeconfig for less than ten minutes", Reason: metav1.StatusReasonInvalid,
			Text: "may not specify a duration less than 10 minutes", request: kubeconfigFor(599),
		},
		{
			Name: "kubeconfig of an unknown shoot", Reason: metav1.StatusReasonNotFound, Text: `"nobody" not found`,
			request: func(ctx context.Context, g Garden, _ *shoot) error {
				return kubeconfigFor(600)(ctx, g, Shoot(g.Namespace, "nobody"))
			},
		},
	}
}

// kubeconfigFor returns a request for an admin kubeconfig with the given validity in seconds. The runtime has no address yet, so
// every such request fails, unless an earlier check rejects it first.
func kubeconfigFor(seconds int64) request {
	return func(ctx context.Context, g Garden, shoot *gardencorev1beta1.Shoot) error {
		return g.Client.SubResource("adminkubeconfig").Create(ctx, shoot, &authenticationv1alpha1.AdminKubeconfigRequest{
			Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: &seconds},
		})
	}
}
