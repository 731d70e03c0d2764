package runtimes_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// set changes a column of all runtimes with SQL, as somebody without the encryption key can.
func (b fixture) set(column, value string) {
	b.Helper()

	if _, err := storage.Exec(b.Context(), b.db.Writer(), `UPDATE runtimes SET `+column+` = ?`, value); err != nil {
		b.Fatal(err)
	}
}

// TestChangedColumnsAreRejected changes, without the encryption key, the columns that determine which tenant the cluster belongs
// to.
func TestChangedColumnsAreRejected(t *testing.T) {
	each(t, func(b fixture) {
		b.insert(runtime("one", "c-1"))

		for column, value := range map[string]string{
			"tenant": "tenant", "subaccount": "sub", "original_tenant": "", "original_subaccount": "", "shoot_name": "c-1",
			"provisioned_by": "operation of one",
		} {
			b.set(column, "other")

			_, err := b.store.Get(b.Context(), b.db.Reader(), "one")
			if !errors.Is(err, storage.ErrChangedColumn) || !strings.Contains(err.Error(), "reading runtime one: "+column+": ") {
				b.Errorf("%s: got %v", column, err)
			}

			b.set(column, value)
		}

		changed := runtime("one", "c-1")
		changed.Configuration = json.RawMessage(`{}`)

		if err := b.store.Configured(b.Context(), changed, 1); err != nil {
			b.Fatal(err)
		}

		if diff := cmp.Diff(changed, b.get("one")); diff != "" {
			b.Errorf("after a change: -want +got\n%s", diff)
		}

		b.set("shoot_name", "c-2")

		if _, err := b.store.Get(b.Context(), b.db.Reader(), "one"); !errors.Is(err, storage.ErrChangedColumn) {
			b.Errorf("Configured does not seal the columns: %v", err)
		}

		if _, err := b.store.OfShoot(b.Context(), b.db.Reader(), "c-2"); !errors.Is(err, storage.ErrChangedColumn) {
			b.Errorf("OfShoot does not compare the columns: %v", err)
		}
	})
}

// TestRowsOfOlderReleases reads a row whose configuration was sealed without the bound columns. The next change must seal them.
func TestRowsOfOlderReleases(t *testing.T) {
	each(t, func(b fixture) {
		want := runtime("one", "c-1")
		b.insert(want)
		b.set("configuration", b.keys.Seal(want.Configuration, runtimes.Sealed().Place("one")))

		if diff := cmp.Diff(want, b.get("one")); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}

		if err := b.db.InTx(b.Context(), func(tx storage.Tx) error { return b.store.Reconfigure(b.Context(), tx, want) }); err != nil {
			b.Fatal(err)
		}

		b.set("tenant", "other")

		if _, err := b.store.Get(b.Context(), b.db.Reader(), "one"); !errors.Is(err, storage.ErrChangedColumn) {
			b.Errorf("the columns are not sealed after a change: %v", err)
		}
	})
}

// TestOlderReleasesReadConfigurations decodes a sealed configuration in the same way as releases that seal no columns.
func TestOlderReleasesReadConfigurations(t *testing.T) {
	each(t, func(b fixture) {
		b.insert(runtime("one", "c-1"))

		sealed, err := storage.Get[string](b.Context(), b.db.Reader(), `SELECT configuration FROM runtimes`)
		if err != nil {
			b.Fatal(err)
		}

		plain, err := b.keys.Open(sealed, runtimes.Sealed().Place("one"))
		if err != nil {
			b.Fatal(err)
		}

		var order struct {
			TargetSecret string `json:"targetSecret"`
		}

		if err := json.Unmarshal(plain, &order); err != nil || order.TargetSecret != "hush" {
			b.Errorf("got %+v, %v", order, err)
		}
	})
}
