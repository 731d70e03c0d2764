package auditlog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// TestEntriesAreBounded stores an entry and an operation with megabytes in each field. The stored rows must be small.
func TestEntriesAreBounded(t *testing.T) {
	const limit = 130 << 10

	onEach(t, 0, func(b fixture) {
		long := strings.Repeat("ü", 1<<20)
		many := make([]string, 20_000)
		for i := range many {
			many[i] = "administrator@example.com"
		}

		by := auditlog.Actor{User: long, Means: long, Platform: long, Originator: long, Address: long, RequestID: long}
		fields := auditlog.Fields{"administrators": many, "name": long, long: 1, "region": "eu"}
		for i := range 20 {
			fields[fmt.Sprintf("zone%d", i)] = strings.Repeat("x", 30_000) // each is within its limit, but all together are not
		}

		entry := auditlog.Entry{
			Action: long, InstanceID: long, OperationID: long, Account: long, BindingID: long, Code: long, Reason: long, By: by,
			Before: fields, After: fields,
		}

		b.add(1, entry)
		b.accept(2, process.New{Kind: "provision", InstanceID: "i1"}, entry)

		for table, query := range map[string]string{
			"audit":      `SELECT LENGTH(action || instance_id || operation_id || ordered_by || account || entry) FROM audit`,
			"operations": `SELECT LENGTH(ordered_by || audit) FROM operations`,
		} {
			if got, err := storage.Get[int](b.Context(), b.db.Reader(), query); err != nil || got > limit {
				b.Errorf("%s: an entry has %d characters, want at most %d: %v", table, got, limit, err)
			}
		}

		got, err := b.entries.List(b.Context(), auditlog.Filter{Limit: 1, ID: "e01"})
		if err != nil || len(got) != 1 || got[0].After["region"] != "eu" || !strings.HasSuffix(got[0].Reason, "ü…") ||
			got[0].After["administrators"] != "(too large for the audit log)" {
			b.Errorf("want the small fields, and marks instead of the others: got %v, %v", got, err)
		}
	})
}

func TestBoundsKeepUsualEntries(t *testing.T) {
	entry := auditlog.Entry{
		Reason: strings.Repeat("x", 1024), By: auditlog.Actor{User: strings.Repeat("ü", 255)},
		After: auditlog.Fields{"administrators": strings.Repeat("x", 25_000)},
	}

	encoded, err := entry.Encode()
	if err != nil {
		t.Fatal(err)
	}

	var got auditlog.Entry
	if err := got.Decode(encoded); err != nil || !cmp.Equal(entry, got) {
		t.Errorf("%v -want +got\n%s", err, cmp.Diff(entry, got))
	}
}

// TestBoundingTwiceChangesNothing encodes entries whose fields just fit into the limit after the first one was replaced, or just exceed it.
func TestBoundingTwiceChangesNothing(t *testing.T) {
	for length := 19_080; length < 19_140; length++ {
		entry := auditlog.Entry{After: auditlog.Fields{
			"a": strings.Repeat("x", 33_000), "b": strings.Repeat("x", 30_000), "c": strings.Repeat("x", length),
		}}

		first, err := entry.Encode()
		if err != nil {
			t.Fatal(err)
		}

		var stored auditlog.Entry
		if err := stored.Decode(first); err != nil {
			t.Fatal(err)
		}

		if second, err := stored.Encode(); err != nil || second != first {
			t.Errorf("length %d: the second time, the entry has %d bytes instead of %d: %v", length, len(second), len(first), err)
		}
	}
}
