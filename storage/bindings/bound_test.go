package bindings_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/bindings"
)

// set changes a column of all bindings with SQL, as somebody without the encryption key can.
func (s fixture) set(column, value string) {
	s.Helper()

	if _, err := storage.Exec(s.Context(), s.db.Writer(), `UPDATE bindings SET `+column+` = ?`, value); err != nil {
		s.Fatal(err)
	}
}

// TestChangedColumnsAreRejected changes, without the encryption key, the columns that determine whose credentials these are.
func TestChangedColumnsAreRejected(t *testing.T) {
	each(t, func(s fixture) {
		one := binding("one")
		s.insert(one, false)

		access := environment.Access{Kubeconfig: "hush", ExpiresAt: one.ExpiresAt}

		for _, when := range []string{"before the credentials are stored", "afterwards"} {
			for column, value := range map[string]string{"binding_id": one.BindingID, "runtime_id": one.RuntimeID, "role": string(one.Role)} {
				s.set(column, "other")

				found := one.BindingID
				if column == "binding_id" {
					found = "other"
				}

				got, err := s.bindings.Get(s.Context(), s.db.Reader(), instanceID, found)
				if !errors.Is(err, storage.ErrChangedColumn) || !strings.Contains(err.Error(), column+": ") || got.Access.Kubeconfig != "" {
					s.Errorf("%s %s: got %v", column, when, err)
				}

				s.set(column, value)
			}

			if err := s.bindings.SaveAccess(s.Context(), s.db.Writer(), one, access); err != nil {
				s.Fatal(err)
			}
		}

		if got, err := s.get("one"); err != nil || got.Access.Kubeconfig != "hush" {
			s.Errorf("the restored row is rejected: %v", err)
		}
	})
}

// TestRowsOfOlderReleases reads credentials that an older release sealed without the bound columns.
func TestRowsOfOlderReleases(t *testing.T) {
	each(t, func(s fixture) {
		s.insert(binding("one"), false)
		s.set("access", s.keys.Seal([]byte(`{"kubeconfig":"hush","server":"https://x"}`), bindings.Sealed().Place("one")))

		if got, err := s.get("one"); err != nil || got.Access.Kubeconfig != "hush" {
			s.Errorf("got %v", err)
		}
	})
}
