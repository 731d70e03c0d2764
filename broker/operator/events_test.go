package operator_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestEvents checks that an instance shows its own events, newest first.
func TestEvents(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := benchOn(t, db)
		b.instance("one", process.Succeeded)
		b.instance("two", process.Succeeded)

		for minute, result := range []string{"renewed", "renewed", "failed"} {
			if err := db.InTx(t.Context(), func(tx storage.Tx) error {
				return b.events.Record(t.Context(), tx, environment.Event{
					InstanceID: "one", System: environment.SystemReconciler, Result: result, Message: "text",
					LastAt: b.clock.Now().Add(time.Duration(minute) * time.Minute),
				})
			}); err != nil {
				t.Fatal(err)
			}
		}

		at := func(minute int) time.Time { return b.clock.Now().Add(time.Duration(minute) * time.Minute) }

		for id, want := range map[string][]operatorapi.Event{
			"one": {
				{System: "reconciler", Result: "failed", Message: "text", Count: 1, FirstAt: at(2), LastAt: at(2)},
				{System: "reconciler", Result: "renewed", Message: "text", Count: 2, FirstAt: at(0), LastAt: at(1)},
			},
			"two": nil,
		} {
			var shown operatorapi.Runtime

			got := b.do("viewer", http.MethodGet, "/runtimes/"+id)
			if err := json.Unmarshal([]byte(got.Raw), &shown); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(want, shown.Events); got.Status != http.StatusOK || diff != "" {
				t.Errorf("%s: status %d, -want +got\n%s", id, got.Status, diff)
			}
		}
	})
}
