package bundles

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// replica is the Source and the Store of a replica. It has the content once fetches succeed.
type replica struct {
	fetches, stored atomic.Int64
	// missing is true while the upload is missing, and changed is true while the source has other content than before.
	missing, changed atomic.Bool
}

func (r *replica) Fetch(_ context.Context, _ string, from v1alpha1.BundleSource, _ *os.Root) (v1alpha1.BundleSource, string, error) {
	r.fetches.Add(1)

	if r.missing.Load() {
		return from, "waiting for the upload", nil
	}

	if r.changed.Load() {
		return from, "", errors.New("the source has changed")
	}

	return from, "", nil
}

func (*replica) Terminal(error) bool { return true }

func (*replica) Reason(error) string { return "" }

func (r *replica) Put(context.Context, fs.FS) (string, error) {
	r.stored.Add(1)

	return "digest", nil
}

func (r *replica) Has(string) bool { return r.stored.Load() > 0 }

type unchanged struct{}

func (unchanged) Convert(_ context.Context, bundle fs.FS) (fs.FS, error) { return bundle, nil }

func newReplica(t *testing.T) (*replica, *Unpacker, *v1alpha1.Bundle) {
	t.Helper()

	r := &replica{}

	unpacker, err := NewUnpacker(UnpackerOptions{
		Source: r, Store: r, Classes: []Class{{"plain", unchanged{}}}, Workers: 1, Timeout: time.Minute, Retry: time.Second, MaxRetry: time.Minute,
		Folder: t.TempDir(), Registry: prometheus.NewRegistry(), Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}

	return r, unpacker, &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "1"}, Spec: v1alpha1.BundleSpec{ProvisionerClassName: "plain"},
		Status: v1alpha1.BundleStatus{Phase: v1alpha1.PhaseUnpacked, Digest: "digest", ResolvedSource: &v1alpha1.BundleSource{}},
	}
}

// TestReplicaThatDoesNotLead verifies that a replica gets the content of an unpacked Bundle after its source was lost and restored, although
// nobody calls Wake there. Requests in the meantime do not cause more than one attempt per pause.
func TestReplicaThatDoesNotLead(t *testing.T) {
	for reason, broken := range map[string]func(*replica) *atomic.Bool{
		"missing": func(r *replica) *atomic.Bool { return &r.missing }, "changed": func(r *replica) *atomic.Bool { return &r.changed },
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, unpacker, bundle := newReplica(t)
				broken(r).Store(true)

				for range 100 {
					unpacker.Fill(bundle)
					synctest.Wait()
					time.Sleep(time.Second / 10)
				}

				if got := r.fetches.Load(); got != 1 {
					t.Errorf("%d attempts in 10 s", got)
				}

				broken(r).Store(false)
				time.Sleep(time.Minute)
				unpacker.Fill(bundle)
				synctest.Wait()

				if !r.Has("digest") {
					t.Error("the replica does not fetch the content of the restored source")
				}
			})
		})
	}
}

// TestNewLeader verifies that a replica that becomes the leader does not report a failure of an attempt that it made long ago.
func TestNewLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, unpacker, bundle := newReplica(t)
		r.changed.Store(true)
		unpacker.Fill(bundle)
		synctest.Wait()
		r.changed.Store(false)

		ctx, cancel := context.WithCancel(t.Context())
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())

		if err := unpacker.enqueue(ctx, queue); err != nil {
			t.Fatal(err)
		}

		if result := unpacker.ensure(bundle); result.outcome.err != nil {
			t.Errorf("the new leader reports %v", result.outcome.err)
		}

		synctest.Wait()

		if !r.Has("digest") {
			t.Error("the new leader does not fetch the content")
		}

		queue.ShutDown()
		cancel()
	})
}
