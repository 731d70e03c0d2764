package refresh_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/refresh"
	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// provisioner returns kubeconfigs with the server, or an error. It records the runtimes of the calls.
type provisioner struct {
	server string
	err    error
	calls  []string
}

func (p *provisioner) Kubeconfig(_ context.Context, _, runtimeID string) (secret.String, error) {
	p.calls = append(p.calls, runtimeID)

	return secret.String(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],
		clusters: [{name: k, cluster: {server: "` + p.server + `", certificate-authority-data: Y2E=}}], users: [{name: u, user: {token: hunter2}}]}`), p.err
}

func TestRefresh(t *testing.T) {
	db, keys := storagetest.SQLite(t), storagetest.Keys(t)
	clock := clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))

	if _, err := operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	known, err := instances.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	store, err := endpoints.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	one := environment.Instance{ID: "one", ShootName: "c-one", RuntimeID: "r-one", CreatedAt: clock.Now(), UpdatedAt: clock.Now()}
	if err := db.InTx(t.Context(), func(tx storage.Tx) error { return storagetest.Insert(t.Context(), tx, known, one) }); err != nil {
		t.Fatal(err)
	}

	upstream := &provisioner{server: "https://first.example.com", err: errors.New("the Provisioner does not respond")}

	refresher := func() *refresh.Refresher {
		return &refresh.Refresher{
			DB: db, Endpoints: store, Instances: known, Clock: clock, Log: logging.Discard(),
			Kubeconfigs: clusterclient.New(upstream).Recording(refresh.Recorder{Endpoints: store, Clock: clock}),
		}
	}
	replicas := []*refresh.Refresher{refresher(), refresher()}

	// step advances the clock, runs all replicas, and compares the calls and the stored address.
	step := func(reason string, after time.Duration, calls []string, server string) {
		t.Helper()
		clock.Step(after)

		upstream.calls = nil

		for _, replica := range replicas {
			if err := errors.Join(replica.AddMissing(t.Context()), replica.Refresh(t.Context())); err != nil {
				t.Fatal(err)
			}
		}

		if diff := cmp.Diff(calls, upstream.calls); diff != "" {
			t.Errorf("%s: calls: -want +got\n%s", reason, diff)
		}

		if got, _ := store.Get(t.Context(), one); got.Server != server {
			t.Errorf("%s: the address is %q, want %q", reason, got.Server, server)
		}
	}

	step("an earlier version has created the cluster", 0, []string{"r-one"}, "")
	step("a failure is not repeated immediately", time.Minute, nil, "")

	upstream.err = nil
	step("a failure is repeated later", 10*time.Minute, []string{"r-one"}, "https://first.example.com")

	upstream.server = "https://second.example.com"
	step("a fresh address is not read again", 6*24*time.Hour, nil, "https://first.example.com")
	step("an old address is read again", 25*time.Hour, []string{"r-one"}, "https://second.example.com")

	if err := known.Delete(t.Context(), db.Writer(), one); err != nil {
		t.Fatal(err)
	}

	step("a deleted instance has no cluster", 8*24*time.Hour, nil, "")

	if left, err := store.ListDue(t.Context(), clock.Now().Add(1000*time.Hour), 10); len(left) > 0 || err != nil {
		t.Errorf("the row of the deleted instance is left: %v, %v", left, err)
	}
}

// TestAddMissingReadsAllPages has more instances than a page.
func TestAddMissingReadsAllPages(t *testing.T) {
	const count = 501

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		keys, clock := storagetest.Keys(t), clock.RealClock{}

		accepted, err := operations.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		known, err := instances.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		addresses, err := endpoints.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		windows, err := orchestrations.Open(t.Context(), db, accepted)
		if err != nil {
			t.Fatal(err)
		}

		if err := db.InTx(t.Context(), func(tx storage.Tx) error {
			for i := range count {
				id := fmt.Sprintf("instance-%03d", i)
				one := environment.Instance{ID: id, ShootName: "c-" + id, RuntimeID: "r-" + id, Provider: "aws", CreatedAt: clock.Now(), UpdatedAt: clock.Now()}

				if err := storagetest.Insert(t.Context(), tx, known, one); err != nil {
					return err
				}
			}

			return nil
		}); err != nil {
			t.Fatal(err)
		}

		refreshers := []interface {
			AddMissing(ctx context.Context) error
		}{
			&refresh.Refresher{Endpoints: addresses, Clock: clock}, &refresh.Windows{Store: windows, Clock: clock},
		}
		for _, refresher := range refreshers {
			if err := refresher.AddMissing(t.Context()); err != nil {
				t.Fatal(err)
			}
		}

		if due, err := addresses.ListDue(t.Context(), clock.Now(), 2*count); len(due) != count || err != nil {
			t.Errorf("%d addresses are due, want %d: %v", len(due), count, err)
		}

		if due, err := windows.DueShootWindows(t.Context(), clock.Now(), 2*count); len(due) != count || err != nil {
			t.Errorf("%d windows are due, want %d: %v", len(due), count, err)
		}
	})
}
