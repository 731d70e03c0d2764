package runtimes_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

func TestRecord(t *testing.T) {
	each(t, func(b fixture) {
		wanted := runtimes.Runtime{ID: "one", Tenant: "acme", ShootName: "c-1", Configuration: []byte(`{"kyma":"hush"}`)}

		record, err := b.store.Record(wanted)
		if err != nil {
			b.Fatal(err)
		}

		if strings.Contains(record, "hush") || strings.Contains(record, "acme") {
			b.Errorf("the record is not sealed: %s", record)
		}

		opened, err := b.store.OpenRecord("one", record)
		if diff := cmp.Diff(wanted, opened); diff != "" || err != nil {
			b.Errorf("%v: -want +got\n%s", err, diff)
		}

		for reason, one := range map[string][2]string{"of another runtime": {"two", record}, "changed": {"one", record[:len(record)-4] + "AAAA"}, "none": {"one", ""}} {
			if _, err := b.store.OpenRecord(one[0], one[1]); err == nil {
				b.Errorf("%s: opened", reason)
			}
		}
	})
}

// ordered returns a runtime of the tenant.
func ordered(id, tenant, original string) runtimes.Runtime {
	row := runtime(id, "c-"+id)
	row.Tenant, row.OriginalTenant = tenant, original

	return row
}

// sortLikeALocale makes PostgreSQL compare the tenants as it does in a database with a locale such as en_US.UTF-8, where "acme"
// precedes "BETA".
func (b fixture) sortLikeALocale() {
	b.Helper()

	if b.db.Driver() != storage.DriverPostgres {
		return
	}

	if _, err := storage.Exec(b.Context(), b.db.Writer(), `ALTER TABLE runtimes
		ALTER COLUMN tenant TYPE TEXT COLLATE "en-x-icu", ALTER COLUMN original_tenant TYPE TEXT COLLATE "en-x-icu"`); err != nil {
		b.Fatal(err)
	}
}

func TestTenantsAndUnsettledLabels(t *testing.T) {
	each(t, func(b fixture) {
		b.insert(ordered("one", "acme", ""))
		b.insert(ordered("two", "acme", ""))
		b.insert(ordered("three", "sha256-x", "-"))
		b.insert(ordered("four", "BETA", ""))

		b.sortLikeALocale()

		first, err := b.store.Tenants(b.Context(), "", 1)
		if err != nil || !slices.Equal(first, []string{"-"}) {
			b.Errorf("got %q, %v", first, err)
		}

		second, err := b.store.Tenants(b.Context(), "-", 10)
		if err != nil || !slices.Equal(second, []string{"BETA", "acme"}) {
			b.Errorf("got %q, %v", second, err)
		}

		if _, err := b.store.IntendRegistration(b.Context(), "acme", "a", start); err != nil {
			b.Fatal(err)
		}

		unsettled, err := b.store.UnsettledLabels(b.Context(), "acme", []string{"a", "b"})
		if err != nil || !slices.Equal(unsettled, []string{"a"}) {
			b.Errorf("got %q, %v", unsettled, err)
		}

		if other, err := b.store.UnsettledLabels(b.Context(), "other", []string{"a"}); err != nil || len(other) != 0 {
			b.Errorf("got %q, %v", other, err)
		}
	})
}
