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
		wantDetail  string
		wantNotText string
	}{
		"not found": {reason: "the object does not exist", err: apierrors.NewNotFound(shoots, name), want: failure.NotFound, wantReason: "NotFound", wantText: "no such object"},
		"not Gardener": {
			reason: "a 404 of a proxy, or of an API server without Shoots, does not mean that the Shoot is deleted: otherwise " +
				"the Provisioner would lose track of its cluster",
			err:  apierrors.NewGenericServerResponse(http.StatusNotFound, "get", shoots, name, "404 page not found", 0, true),
			want: failure.Transient, wantReason: "NotFound", wantText: "does not respond correctly: HTTP status 404",
		},
		"error page": {
			reason: "the error page of a proxy has internal names, and client-go quotes it in the message",
			err:    apierrors.NewGenericServerResponse(http.StatusInternalServerError, "get", shoots, name, "<html>gw-7.internal</html>", 0, true),
			want:   failure.Transient, wantReason: "InternalError", wantText: "does not respond correctly: HTTP status 500", wantNotText: "gw-7.internal",
		},
		"invalid":      {reason: "the same order fails again", err: invalid, want: failure.Invalid, wantReason: "Invalid", wantText: "Gardener rejects the region", wantDetail: `"mars"`},
		"bad request":  {reason: "the same order fails again", err: apierrors.NewBadRequest("not so"), want: failure.Invalid, wantReason: "BadRequest", wantText: "Gardener rejects the order", wantDetail: "not so"},
		"too large":    {reason: "the same order is too large again", err: apierrors.NewRequestEntityTooLargeError("huge"), want: failure.Invalid, wantReason: "RequestEntityTooLarge", wantText: "Gardener rejects the order", wantDetail: "huge"},
		"unauthorized": {reason: "operations resume when the credentials are renewed", err: apierrors.NewUnauthorized("expired"), want: failure.Transient, wantReason: "Unauthorized", wantText: "renew them in its kubeconfig", wantDetail: "expired"},
		"no right": {
			reason: "operations resume when the permission is granted, or immediately if the API server was wrong",
			err:    forbidden(`User "system:serviceaccount:garden-kyma:provisioner" cannot patch resource "shoots" in API group "core.gardener.cloud" in the namespace "garden-kyma"`),
			want:   failure.Transient, wantReason: "Forbidden", wantText: "lack a permission in Gardener: an operator must grant it", wantDetail: `cannot patch resource "shoots"`,
		},
		"overloaded": {
			reason: "an admission plugin has too many requests; the same order succeeds later",
			err:    forbidden("aws provider secret sanity check failed: client rate limiter Wait returned an error: context canceled"),
			want:   failure.Transient, wantReason: "Forbidden", wantText: "Gardener is overloaded", wantDetail: "client rate limiter",
		},
		"not ready": {
			reason: "an API server that has just started forbids everything", err: forbidden("not yet ready to handle request"),
			want: failure.Transient, wantReason: "Forbidden", wantText: "Gardener is not ready yet",
		},
		"quota of Shoots": {
			reason: "an operator must raise the quota", err: forbidden("quota limits exceeded. Unable to allocate further cpu, memory"),
			want: failure.Quota, wantReason: "Forbidden", wantText: "quota of the Gardener project is exhausted",
		},
		"quota of objects": {
			reason: "an operator must raise the quota", err: forbidden("exceeded quota: gardener, requested: " +
				"count/shoots.core.gardener.cloud=1, used: 5, limited: 5"),
			want: failure.Quota, wantReason: "Forbidden", wantText: "quota of the Gardener project is exhausted", wantDetail: "used: 5, limited: 5",
		},
		"not offered": {
			reason: "the same order fails again", err: forbidden(`[spec.provider.workers[0].machine.type: Unsupported value: "m5.monster"]`),
			want: failure.Invalid, wantReason: "Forbidden", wantText: "Gardener rejects the machine type", wantDetail: `is forbidden: [spec.provider.workers[0].machine.type: Unsupported value: "m5.monster"]`,
		},
		"already exists": {reason: "another client created it first", err: apierrors.NewAlreadyExists(shoots, name), want: failure.Conflict, wantReason: "AlreadyExists", wantText: "it already exists"},
		"conflict":       {reason: "the next attempt reads the new version", err: apierrors.NewConflict(shoots, name, errors.New("changed")), want: failure.Transient, wantReason: "Conflict"},
		"too many":       {reason: "the rate limit is temporary", err: apierrors.NewTooManyRequests("slow down", 1), want: failure.Transient, wantReason: "TooManyRequests"},
		"timeout":        {reason: "the server was busy", err: apierrors.NewTimeoutError("etcd", 1), want: failure.Transient, wantReason: "Timeout"},
		"internal":       {reason: "the server may recover", err: apierrors.NewInternalError(errors.New("webhook down")), want: failure.Transient, wantReason: "InternalError"},
		"unavailable":    {reason: "the server may come back", err: apierrors.NewServiceUnavailable("rolling"), want: failure.Transient, wantReason: "ServiceUnavailable"},
		"hostile":        {reason: "an admission plugin may write anything", err: apierrors.NewBadRequest(hostile), want: failure.Invalid, wantReason: "BadRequest", wantText: "Gardener rejects the order", wantDetail: "quota"},
		"transport": {
			reason: "transport errors may contain internal addresses", err: errors.New("dial tcp 10.1.2.3:443: refused"),
			want: failure.Transient, wantReason: failure.ReasonInternal, wantText: "does not respond correctly", wantNotText: "10.1.2.3",
		},
		"time over": {
			reason: "the server was slow", err: context.DeadlineExceeded, want: failure.Transient, wantReason: failure.ReasonInternal,
		},
	}

	b := newFixture(t)
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
				t.Errorf("%s: got %s with reason %q in %q: %v", c.reason, known.Kind, known.Reason, known.Component, err)
			}

			if !strings.HasPrefix(known.Text, `reading the Shoot "c-first"`) || !strings.Contains(known.Text, c.wantText) {
				t.Errorf("%s: got text %q", c.reason, known.Text)
			}

			checkText(t, c.reason, known.Text, 255)

			if c.wantDetail != "" {
				checkText(t, c.reason, known.Detail, 1000)
			}

			if !strings.Contains(known.Detail, c.wantDetail) || c.wantDetail != "" && strings.Contains(known.Text, c.wantDetail) {
				t.Errorf("%s: got text %q and detail %q", c.reason, known.Text, known.Detail)
			}

			if c.wantNotText != "" && strings.Contains(known.ForOperators(), c.wantNotText) {
				t.Errorf("%s: got text %q", c.reason, known.Text)
			}
		})
	}
}

// TestEachCallExplainsItsErrors fails each request of a deletion in turn. The error must be transient and name the failed
// action, and the next attempt must succeed.
func TestEachCallExplainsItsErrors(t *testing.T) {
	away := errors.New("dial tcp 10.1.2.3:443: refused")

	cases := map[string]struct {
		reason string
		funcs  interceptor.Funcs
		want   string
	}{
		"reading before a deletion": {
			"a Shoot that cannot be read must not be treated as deleted",
			interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return away
			}},
			"reading the Shoot",
		},
		"confirming": {
			"Gardener rejects a deletion without confirmation",
			interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return away
			}},
			"annotating the Shoot",
		},
		"deleting": {
			"a lost deletion is sent again",
			interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return away }},
			"deleting the Shoot",
		},
	}

	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			b := newFixture(t)
			b.apply(runtimeID)

			err := b.through(c.funcs).Delete(t.Context(), name, runtimeID)
			if !failure.Is(err, failure.Transient) || !strings.Contains(failure.Of(err).Text, c.want) {
				t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
			}

			if err := b.shoots.Delete(t.Context(), name, runtimeID); err != nil {
				t.Errorf("%s: the next attempt returned %v", c.reason, err)
			}
		})
	}
}

// TestSilentGardener checks that each method gives up after its timeout if Gardener does not respond. Otherwise a worker would
// hang.
func TestSilentGardener(t *testing.T) {
	calls := map[string]func(ctx context.Context, b fixture, shoots *gardener.Client) error{
		"reading": func(ctx context.Context, _ fixture, shoots *gardener.Client) error {
			_, err := shoots.Get(ctx, name)
			return err
		},
		"listing": func(ctx context.Context, _ fixture, shoots *gardener.Client) error {
			_, err := shoots.Owned(ctx)
			return err
		},
		"listing ConfigMaps": func(ctx context.Context, _ fixture, shoots *gardener.Client) error {
			_, err := shoots.ConfigMapOwners(ctx)

			return err
		},
		"applying": func(ctx context.Context, b fixture, shoots *gardener.Client) error {
			return shoots.Apply(ctx, b.order(runtimeID))
		},
		"changing": func(ctx context.Context, b fixture, shoots *gardener.Client) error {
			return shoots.Change(ctx, b.get(), b.order(runtimeID))
		},
		"hibernating": func(ctx context.Context, b fixture, shoots *gardener.Client) error {
			return shoots.SetHibernation(ctx, b.get(), true, nil)
		},
		"deleting": func(ctx context.Context, _ fixture, shoots *gardener.Client) error {
			return shoots.Delete(ctx, name, runtimeID)
		},
		"retrying": func(ctx context.Context, b fixture, shoots *gardener.Client) error { return shoots.Retry(ctx, b.get()) },
		"tidying": func(ctx context.Context, _ fixture, shoots *gardener.Client) error {
			return shoots.Tidy(ctx, runtimeID, nil)
		},
		"requesting a kubeconfig": func(ctx context.Context, _ fixture, shoots *gardener.Client) error {
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
				b := newFixture(t)
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
					t.Errorf("the call ends after %s with %v", took, err)
				}
			})
		})
	}
}
