package operations_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// marker stands for personal data.
const marker = "marker"

// ordered accepts an operation with personal data for the account.
func (b fixture) ordered(id, account string) {
	b.Helper()

	if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
		return b.store.Accept(b.Context(), tx, process.New{
			ID: id, Kind: "provision", InstanceID: "instance of " + id, Tenant: account, Description: marker, At: start,
			Payload: json.RawMessage(`{"user":"marker"}`), OrderedBy: marker, Audit: `{"by":{"user":"marker"}}`, Trace: marker, Why: marker,
		})
	}); err != nil {
		b.Fatal(err)
	}
}

// failAll ends all operations with an error that contains personal data.
func (b fixture) failAll() {
	b.Helper()

	for _, claimed := range b.claim("a", start) {
		record := claimed.Record
		record.Description, record.Progress, record.WaitingFor = marker, marker, marker
		record.Problem = process.Problem{Message: marker, Reason: marker, Component: marker}

		progress := finished(record, process.Failed)
		progress.Timeline = []process.Entry{{Stage: "s", Step: "t", Attempt: 1, Began: start, End: start, Outcome: process.StepFailed, Message: marker}}
		progress.Failed = []process.Attempt{{Stage: "s", Step: "t", Number: 1, First: start, Last: start, Failures: 1, LastError: marker}}

		b.save(progress)
	}
}

// rowsWithMarker returns the tables and keys of the rows that contain the marker.
func (b fixture) rowsWithMarker() []string {
	b.Helper()

	found := []string{}

	for table, key := range map[string]string{"operations": "id", "timeline": "operation_id", "step_attempts": "operation_id"} {
		rows, err := b.db.Reader().QueryxContext(b.Context(), `SELECT * FROM `+table)
		if err != nil {
			b.Fatal(err)
		}

		for rows.Next() {
			row := map[string]any{}
			if err := rows.MapScan(row); err != nil {
				b.Fatal(err)
			}

			if strings.Contains(fmt.Sprintf("%s", row), marker) {
				found = append(found, fmt.Sprintf("%s %s", table, row[key]))
			}
		}

		if err := rows.Close(); err != nil {
			b.Fatal(err)
		}
	}

	return found
}

func TestErase(t *testing.T) {
	each(t, func(b fixture) {
		b.ordered("o1", "a1")
		b.ordered("o2", "a1")
		b.ordered("other", "a2")
		b.failAll()
		b.ordered("open", "a1")

		counts, err := b.store.CountErasable(b.Context(), "a1")
		if diff := cmp.Diff(operations.ErasableCounts{Operations: 2, TimelineEntries: 6}, counts); diff != "" || err != nil {
			b.Errorf("%v -want +got\n%s", err, diff)
		}

		unfinished, err := b.store.Unfinished(b.Context(), b.db.Reader(), "a1", 5)
		if err != nil || len(unfinished) != 1 || unfinished[0].ID != "open" {
			b.Errorf("want the unfinished operation, got %+v, %v", unfinished, err)
		}

		erase := func(want ...string) {
			b.Helper()

			if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
				ids, err := b.store.Erasable(b.Context(), tx, "a1", 1)
				if err != nil {
					return err
				}

				if diff := cmp.Diff(append([]string{}, want...), ids); diff != "" {
					b.Errorf("-want +got\n%s", diff)
				}

				removed, err := b.store.EraseTimelines(b.Context(), tx, ids)
				if removed != 3*len(want) {
					b.Errorf("removed %d rows of timelines, want 3 for each operation", removed)
				}

				if err != nil {
					return err
				}

				return b.store.Erase(b.Context(), tx, ids, "erasure", start.Add(time.Hour))
			}); err != nil {
				b.Fatal(err)
			}
		}

		erase("o1")
		erase("o2")
		erase()

		for _, row := range b.rowsWithMarker() {
			if strings.HasSuffix(row, "o1") || strings.HasSuffix(row, "o2") {
				b.Errorf("personal data is left: %s", row)
			}
		}

		if left := len(b.rowsWithMarker()); left != 6 {
			b.Errorf("the rows of the other account and of the unfinished operation are incomplete: %v", b.rowsWithMarker())
		}

		payload, err := b.store.Payload(b.Context(), b.db.Reader(), "o1")
		if string(payload) != `{}` || err != nil {
			b.Errorf("want an empty payload, got %s, %v", payload, err)
		}

		record := b.get("o1")
		if record.State != process.Failed || record.Kind != "provision" || record.Description != "Erased" || record.Audit != `{}` ||
			record.OrderedBy != "" || !record.TimelineRemoved.Equal(storage.At(start.Add(time.Hour)).Time) {
			b.Errorf("the operation must keep its kind and state, and nothing else: %+v", record)
		}
	})
}
