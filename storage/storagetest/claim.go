package storagetest

import (
	"testing"

	"github.com/environment-broker/environment-broker/process"
)

// Claim claims what an engine with these kinds would: what is due again, and what is pending.
func Claim(t testing.TB, store process.Store, claim process.Claim, kinds ...string) []process.Claimed {
	t.Helper()

	var all []process.Claimed

	for _, kind := range kinds {
		for _, pending := range []bool{false, true} {
			claim.Kind, claim.Pending = kind, pending

			claimed, err := store.Claim(t.Context(), claim)
			if err != nil {
				t.Fatal(err)
			}

			all = append(all, claimed...)
		}
	}

	return all
}
