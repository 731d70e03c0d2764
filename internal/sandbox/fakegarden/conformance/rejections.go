//nolint:staticcheck // Some rejections are about deprecated fields.
package conformance

import (
	"context"
	"slices"
	"strings"
	"testing"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

// rejection is a request that a garden rejects. The wanted reason and text are those of Gardener's API server: the local garden
// proves them, the fake garden has to match.
type rejection struct {
	name string
	want metav1.StatusReason
	// text is a part of the message.
	text    string
	request request
}

// request sends a request. The Shoot exists, its runtime does not.
type request func(ctx context.Context, g Garden, shoot *gardencorev1beta1.Shoot) error

// Rejections sends invalid requests and checks that the garden rejects them with the errors of Gardener's API server.
func Rejections(t *testing.T, g Garden) {
	ctx := t.Context()
	const name = "rejected"
	g.injectFault(ctx, t, name, gardenlet.FaultStuck)
	g.apply(ctx, t, Shoot(g.Namespace, name))
	g.await(ctx, t, name, "its creation has started", nil, func(shoot *gardencorev1beta1.Shoot) bool {
		return shoot.Status.LastOperation != nil
	})
	for _, rejection := range append(newShoots(), append(changes(), requests()...)...) {
		t.Run(rejection.name, func(t *testing.T) {
			err := rejection.request(t.Context(), g, g.get(t.Context(), t, name))
			if got := apierrors.ReasonForError(err); err == nil || got != rejection.want || !strings.Contains(err.Error(), rejection.text) {
				t.Errorf("got:  %q %v\nwant: %q …%s…", got, err, rejection.want, rejection.text)
			}
		})
	}
	g.remove(ctx, t, name, nil)
}

// create returns a request to create a Shoot, which spoil has made invalid. A garden that accepts the Shoot fails the test, and
// keeps the Shoot.
func create(spoil func(shoot *gardencorev1beta1.Shoot, spec *gardencorev1beta1.ShootSpec)) request {
	return func(ctx context.Context, g Garden, _ *gardencorev1beta1.Shoot) error {
		shoot := Shoot(g.Namespace, "invalid")
		spoil(shoot, &shoot.Spec)
		return g.Client.Create(ctx, shoot)
	}
}

// update returns a request to change the Shoot in an invalid way. A merge patch sends the changed fields only, so that every
// rejection has one cause.
func update(spoil func(shoot *gardencorev1beta1.Shoot)) request {
	return func(ctx context.Context, g Garden, shoot *gardencorev1beta1.Shoot) error {
		before := shoot.DeepCopy()
		spoil(shoot)
		return g.Client.Patch(ctx, shoot, client.MergeFrom(before))
	}
}

// newShoots returns Shoots that cannot be created.
func newShoots() []rejection { return slices.Concat(incompleteShoots(), unsupportedShoots()) }

// incompleteShoots returns Shoots with invalid names or missing references.
func incompleteShoots() []rejection {
	type (
		shoot = gardencorev1beta1.Shoot
		spec  = gardencorev1beta1.ShootSpec
	)
	const invalid, forbidden = metav1.StatusReasonInvalid, metav1.StatusReasonForbidden
	return []rejection{
		{
			"names of project and shoot longer than 21 characters", invalid, "must not exceed 21 characters",
			create(func(shoot *shoot, _ *spec) { shoot.Name = "a-name-that-is-too-long" }),
		},
		{"two hyphens in the name", invalid, "two consecutive hyphens", create(func(shoot *shoot, _ *spec) { shoot.Name = "c--1" })},
		{
			"no credentials", invalid, "must be set when credentialsBindingName is not",
			create(func(_ *shoot, spec *spec) { spec.CredentialsBindingName = nil }),
		},
		{"unknown credentials", forbidden, `"nobody" not found`, create(func(_ *shoot, spec *spec) { spec.CredentialsBindingName = new("nobody") })},
		{
			"credentials for another provider", forbidden, "provider type in shoot must match provider type of referenced CredentialsBinding",
			create(func(_ *shoot, spec *spec) { spec.CredentialsBindingName = new("azure") }),
		},
		{
			"unknown cloud profile", metav1.StatusReasonInternalError, "could not find referenced cloud profile",
			create(func(_ *shoot, spec *spec) { spec.CloudProfile.Name = "nowhere" }),
		},
		{
			"missing authentication configuration", forbidden, "failed to resolve structured authentication config map reference",
			create(func(_ *shoot, spec *spec) {
				spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{
					StructuredAuthentication: &gardencorev1beta1.StructuredAuthentication{ConfigMapName: "nothing"},
				}
			}),
		},
		{
			"extension without a controller", forbidden, "given Shoot uses non-registered extension type",
			create(func(_ *shoot, spec *spec) { spec.Extensions = []gardencorev1beta1.Extension{{Type: "teleporter"}} }),
		},
		{
			"toleration that the project does not allow", forbidden, "only the following tolerations are allowed",
			create(func(_ *shoot, spec *spec) { spec.Tolerations = []gardencorev1beta1.Toleration{{Key: "everything"}} }),
		},
	}
}

// unsupportedShoots returns Shoots with values that the cloud profile does not offer, and with fields for an older Kubernetes.
func unsupportedShoots() []rejection {
	type (
		shoot = gardencorev1beta1.Shoot
		spec  = gardencorev1beta1.ShootSpec
	)
	const invalid, forbidden = metav1.StatusReasonInvalid, metav1.StatusReasonForbidden
	return []rejection{
		{
			"unknown machine type", forbidden, `spec.provider.workers[0].machine.type: Unsupported value: "m5.monster"`,
			create(func(_ *shoot, spec *spec) { spec.Provider.Workers[0].Machine.Type = "m5.monster" }),
		},
		{
			"unknown machine image", forbidden, `spec.provider.workers[0].machine.image.version: Unsupported value: "1.2.3"`,
			create(func(_ *shoot, spec *spec) {
				spec.Provider.Workers[0].Machine.Image = &gardencorev1beta1.ShootMachineImage{Name: "gardenlinux", Version: new("1.2.3")}
			}),
		},
		{
			"unknown volume type", forbidden, `spec.provider.workers[0].volume.type: Unsupported value: "tape"`,
			create(func(_ *shoot, spec *spec) { spec.Provider.Workers[0].Volume.Type = new("tape") }),
		},
		{
			"unknown region", forbidden, `spec.region: Unsupported value: "mars-north-1"`,
			create(func(_ *shoot, spec *spec) { spec.Region = "mars-north-1" }),
		},
		{
			"zone of another region", forbidden, `spec.provider.workers[0].zones[0]: Unsupported value: "eu-west-1a"`,
			create(func(_ *shoot, spec *spec) { spec.Provider.Workers[0].Zones = []string{"eu-west-1a"} }),
		},
		{
			"unknown Kubernetes version", forbidden, `spec.kubernetes.version: Unsupported value: "1.35.99"`,
			create(func(_ *shoot, spec *spec) { spec.Kubernetes.Version = "1.35.99" }),
		},
		{
			"maximum below the minimum", invalid, "maximum value must not be less than minimum value",
			create(func(_ *shoot, spec *spec) { spec.Provider.Workers[0].Maximum = 0 }),
		},
		{
			"access restriction of another region", forbidden, `spec.accessRestrictions[0]: Unsupported value: "eu-access-only"`,
			create(func(_ *shoot, spec *spec) {
				spec.Region, spec.Provider.Workers[0].Zones = "us-west-1", []string{"us-west-1a"}
				spec.AccessRestrictions = []gardencorev1beta1.AccessRestrictionWithOptions{
					{AccessRestriction: gardencorev1beta1.AccessRestriction{Name: "eu-access-only"}},
				}
			}),
		},

		{
			"secret binding since 1.34", invalid, "secretBindingName field is no longer supported",
			create(func(_ *shoot, spec *spec) { spec.CredentialsBindingName, spec.SecretBindingName = nil, new(provider) }),
		},
		{
			"cloud profile by its name since 1.34", invalid, "cloudProfileName field is no longer supported",
			create(func(_ *shoot, spec *spec) { spec.CloudProfile, spec.CloudProfileName = nil, new("aws") }),
		},
		{"addons since 1.35", invalid, "addons field is no longer supported", create(func(_ *shoot, spec *spec) {
			spec.Addons = &gardencorev1beta1.Addons{NginxIngress: &gardencorev1beta1.NginxIngress{Addon: gardencorev1beta1.Addon{Enabled: true}}}
		})},
		{"secret of a DNS provider since 1.35", invalid, "secretName field is no longer supported", create(func(_ *shoot, spec *spec) {
			spec.DNS = &gardencorev1beta1.DNS{
				Domain:    new("runtime.example.com"),
				Providers: []gardencorev1beta1.DNSProvider{{Type: new("aws-route53"), SecretName: new(provider), Primary: new(true)}},
			}
		})},
	}
}

// changes returns invalid changes of a Shoot. Each starts from the stored Shoot, which no rejected change has modified.
func changes() []rejection {
	type shoot = gardencorev1beta1.Shoot
	const invalid = metav1.StatusReasonInvalid
	return []rejection{
		{"other region", invalid, "spec.region: Invalid value", update(func(shoot *shoot) { shoot.Spec.Region = "eu-west-1" })},
		{
			"older Kubernetes", invalid, "kubernetes version downgrade is not supported",
			update(func(shoot *shoot) { shoot.Spec.Kubernetes.Version = "1.35.2" }),
		},
		{
			"other network plugin", invalid, "spec.networking.type: Invalid value",
			update(func(shoot *shoot) { shoot.Spec.Networking.Type = new("cilium") }),
		},
		{
			"removed credentials", invalid, "spec.credentialsBindingName: Forbidden: the field cannot be unset",
			update(func(shoot *shoot) { shoot.Spec.CredentialsBindingName = nil }),
		},
		{
			"removed finalizer of the gardenlet", metav1.StatusReasonForbidden, `finalizer "gardener" cannot be removed`,
			update(func(shoot *shoot) { shoot.Finalizers = nil }),
		},
		{
			"outdated resource version", metav1.StatusReasonConflict, "Operation cannot be fulfilled on shoots.core.gardener.cloud",
			func(ctx context.Context, g Garden, shoot *shoot) error {
				stale := shoot.DeepCopy()
				metav1.SetMetaDataLabel(&shoot.ObjectMeta, "changed", "first")
				if err := g.Client.Update(ctx, shoot); err != nil {
					return err
				}
				metav1.SetMetaDataLabel(&stale.ObjectMeta, "changed", "second")
				return g.Client.Update(ctx, stale)
			},
		},
	}
}

// requests returns other invalid requests: a duplicate, an unconfirmed deletion, and requests for kubeconfigs.
func requests() []rejection {
	type shoot = gardencorev1beta1.Shoot
	return []rejection{
		{
			"creation of an existing shoot", metav1.StatusReasonAlreadyExists, "already exists",
			func(ctx context.Context, g Garden, shoot *shoot) error {
				return g.Client.Create(ctx, Shoot(g.Namespace, shoot.Name))
			},
		},
		{
			"unconfirmed deletion", metav1.StatusReasonForbidden, `must have a "confirmation.gardener.cloud/deletion" annotation to delete`,
			func(ctx context.Context, g Garden, shoot *shoot) error { return g.Client.Delete(ctx, shoot) },
		},
		{
			"kubeconfig of a runtime without an address", metav1.StatusReasonInvalid, "no suitable advertised address",
			kubeconfigFor(3600),
		},
		{
			"kubeconfig for less than ten minutes", metav1.StatusReasonInvalid, "may not specify a duration less than 10 minutes",
			kubeconfigFor(599),
		},
		{
			"kubeconfig of an unknown shoot", metav1.StatusReasonNotFound, `"nobody" not found`,
			func(ctx context.Context, g Garden, _ *shoot) error {
				return kubeconfigFor(600)(ctx, g, Shoot(g.Namespace, "nobody"))
			},
		},
	}
}

// kubeconfigFor returns a request for an admin kubeconfig that is valid for the seconds.
func kubeconfigFor(seconds int64) request {
	return func(ctx context.Context, g Garden, shoot *gardencorev1beta1.Shoot) error {
		return g.Client.SubResource("adminkubeconfig").Create(ctx, shoot, &authenticationv1alpha1.AdminKubeconfigRequest{
			Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: &seconds},
		})
	}
}
