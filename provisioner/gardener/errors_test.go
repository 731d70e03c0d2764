package gardener_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

func TestErrorsOfGardener(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "core.gardener.cloud", Kind: "Shoot"}, name,
		field.ErrorList{field.NotSupported(field.NewPath("spec", "region"), "mars", []string{"eu"})})

	forbidden := func(why string) error { return apierrors.NewForbidden(shoots, name, errors.New(why)) }

	cases := map[string]struct {
		reason      string
		err         error
		want        failure.Kind
		wantReason  string
		wantText    string
		wantNotText string
	}{
		"not found": {reason: "there is none", err: apierrors.NewNotFound(shoots, name), want: failure.NotFound, wantReason: "NotFound", wantText: "no such object"},
		"not Gardener": {
			reason: "whoever answers in Gardener's place, a proxy or an API server that does not offer Shoots, says nothing of a Shoot: taken for " +
				"gone, a cluster would be forgotten that stands",
			err:  apierrors.NewGenericServerResponse(http.StatusNotFound, "get", shoots, name, "404 page not found", 0, true),
			want: failure.Transient, wantReason: "NotFound", wantText: "does not respond correctly: the server could not find the requested resource",
		},
		"invalid":      {reason: "the order stays wrong", err: invalid, want: failure.Invalid, wantReason: "Invalid", wantText: `"mars"`},
		"bad request":  {reason: "the order stays wrong", err: apierrors.NewBadRequest("not so"), want: failure.Invalid, wantReason: "BadRequest", wantText: "not so"},
		"too large":    {reason: "the order stays too large", err: apierrors.NewRequestEntityTooLargeError("huge"), want: failure.Invalid, wantReason: "RequestEntityTooLarge", wantText: "huge"},
		"unauthorized": {reason: "what waits goes on when the credentials are renewed", err: apierrors.NewUnauthorized("expired"), want: failure.Transient, wantReason: "Unauthorized", wantText: "renew the credentials in its kubeconfig: expired"},
		"no right": {
			reason: "what waits goes on when the right is granted, and what was refused for no reason at once",
			err:    forbidden(`User "system:serviceaccount:garden-kyma:provisioner" cannot patch resource "shoots" in API group "core.gardener.cloud" in the namespace "garden-kyma"`),
			want:   failure.Transient, wantReason: "Forbidden", wantText: `lacks a permission in Gardener: grant it: `,
		},
		"not ready": {
			reason: "an API server that has just started forbids everything", err: forbidden("not yet ready to handle request"),
			want: failure.Transient, wantReason: "Forbidden", wantText: "Gardener is not ready yet",
		},
		"quota of Shoots": {
			reason: "somebody has to raise it", err: forbidden("quota limits exceeded. Unable to allocate further cpu, memory"),
			want: failure.Quota, wantReason: "Forbidden", wantText: "quota of the Gardener project is exhausted",
		},
		"quota of objects": {
			reason: "somebody has to raise it", err: forbidden("exceeded quota: gardener, requested: count/shoots.core.gardener.cloud=1, used: 5, limited: 5"),
			want: failure.Quota, wantReason: "Forbidden", wantText: "used: 5, limited: 5",
		},
		"not offered": {
			reason: "the order stays wrong", err: forbidden(`[spec.provider.workers[0].machine.type: Unsupported value: "m5.monster"]`),
			want: failure.Invalid, wantReason: "Forbidden", wantText: `Gardener rejects it: shoots.core.gardener.cloud "c-first" is forbidden: [spec.provider.workers[0].machine.type`,
		},
		"already exists": {reason: "somebody was faster", err: apierrors.NewAlreadyExists(shoots, name), want: failure.Conflict, wantReason: "AlreadyExists", wantText: "exists already"},
		"conflict":       {reason: "the next try reads anew", err: apierrors.NewConflict(shoots, name, errors.New("changed")), want: failure.Transient, wantReason: "Conflict"},
		"too many":       {reason: "the limit passes", err: apierrors.NewTooManyRequests("slow down", 1), want: failure.Transient, wantReason: "TooManyRequests"},
		"timeout":        {reason: "the server was busy", err: apierrors.NewTimeoutError("etcd", 1), want: failure.Transient, wantReason: "Timeout"},
		"internal":       {reason: "the server may be mended", err: apierrors.NewInternalError(errors.New("webhook down")), want: failure.Transient, wantReason: "InternalError"},
		"unavailable":    {reason: "the server may come back", err: apierrors.NewServiceUnavailable("rolling"), want: failure.Transient, wantReason: "ServiceUnavailable"},
		"transport": {
			reason: "what a transport says may name what users must not see", err: errors.New("dial tcp 10.1.2.3:443: refused"),
			want: failure.Transient, wantReason: failure.ReasonInternal, wantText: "does not respond correctly", wantNotText: "10.1.2.3",
		},
		"time over": {
			reason: "the server was slow", err: context.DeadlineExceeded, want: failure.Transient, wantReason: failure.ReasonInternal,
		},
	}

	b := newBench(t)
	b.apply(runtimeID)

	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			failing := b.through(interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return c.err
				},
			})

			_, err := failing.Get(t.Context(), name)
			known := failure.Of(err)

			if known.Kind != c.want || known.Reason != c.wantReason || known.Component != failure.ComponentGardenerClient || !errors.Is(err, c.err) {
				t.Errorf("%s: got %s because of %q in %q: %v", c.reason, known.Kind, known.Reason, known.Component, err)
			}

			if !strings.HasPrefix(known.Text, `reading the Shoot "c-first"`) || !strings.Contains(known.Text, c.wantText) {
				t.Errorf("%s: users read %q", c.reason, known.Text)
			}

			if c.wantNotText != "" && strings.Contains(known.Text, c.wantNotText) {
				t.Errorf("%s: users read %q", c.reason, known.Text)
			}
		})
	}
}

// TestEachCallExplainsItsErrors has each call of a client fail.
func TestEachCallExplainsItsErrors(t *testing.T) {
	away := errors.New("dial tcp 10.1.2.3:443: refused")

	cases := map[string]struct {
		reason string
		funcs  interceptor.Funcs
		want   string
	}{
		"reading before a deletion": {
			"a Shoot that cannot be read is not taken for gone",
			interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return away
			}},
			"reading the Shoot",
		},
		"confirming": {
			"a deletion that is not confirmed would be refused",
			interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return away
			}},
			"annotating the Shoot",
		},
		"deleting": {
			"a deletion that did not arrive is sent again",
			interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return away }},
			"deleting the Shoot",
		},
	}

	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			b := newBench(t)
			b.apply(runtimeID)

			err := b.through(c.funcs).Delete(t.Context(), name, runtimeID)
			if !failure.Is(err, failure.Transient) || !strings.Contains(failure.Of(err).Text, c.want) {
				t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
			}

			if err := b.shoots.Delete(t.Context(), name, runtimeID); err != nil {
				t.Errorf("%s: the next try gives %v", c.reason, err)
			}
		})
	}
}

// TestGardenerThatIsSilentHoldsNobody has each call of a client go unanswered: a worker must not hang.
func TestGardenerThatIsSilentHoldsNobody(t *testing.T) {
	calls := map[string]func(ctx context.Context, b bench, shoots *gardener.Client) error{
		"reading": func(ctx context.Context, _ bench, shoots *gardener.Client) error {
			_, err := shoots.Get(ctx, name)
			return err
		},
		"listing": func(ctx context.Context, _ bench, shoots *gardener.Client) error {
			_, err := shoots.Owned(ctx)
			return err
		},
		"looking for what stands beside": func(ctx context.Context, _ bench, shoots *gardener.Client) error {
			_, err := shoots.Beside(ctx)

			return err
		},
		"applying": func(ctx context.Context, b bench, shoots *gardener.Client) error {
			return shoots.Apply(ctx, b.order(runtimeID))
		},
		"changing": func(ctx context.Context, b bench, shoots *gardener.Client) error {
			return shoots.Change(ctx, b.get(), b.order(runtimeID))
		},
		"deleting": func(ctx context.Context, _ bench, shoots *gardener.Client) error {
			return shoots.Delete(ctx, name, runtimeID)
		},
		"retrying": func(ctx context.Context, b bench, shoots *gardener.Client) error { return shoots.Retry(ctx, b.get()) },
		"tidying": func(ctx context.Context, _ bench, shoots *gardener.Client) error {
			return shoots.Tidy(ctx, runtimeID, nil)
		},
		"asking for a kubeconfig": func(ctx context.Context, _ bench, shoots *gardener.Client) error {
			_, err := shoots.AdminKubeconfig(ctx, name, time.Hour)

			return err
		},
	}

	silent := func(ctx context.Context) error {
		<-ctx.Done()

		return ctx.Err()
	}

	for title, call := range calls {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.apply(runtimeID)

				shoots := b.through(interceptor.Funcs{
					Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
						return silent(ctx)
					},
					List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
						return silent(ctx)
					},
					Patch: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, _ ...client.PatchOption) error {
						return silent(ctx)
					},
					Apply: func(ctx context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
						return silent(ctx)
					},
				})

				began := time.Now()
				err := call(t.Context(), b, shoots)

				if took := time.Since(began); !failure.Is(err, failure.Transient) || took > time.Minute {
					t.Errorf("it ends after %s with %v", took, err)
				}
			})
		})
	}
}
