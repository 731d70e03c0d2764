package instances_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/storage"
)

func TestOfAccount(t *testing.T) {
	each(t, func(s fixture) {
		if _, err := storage.Exec(s.Context(), s.db.Writer(),
			`UPDATE instances SET subscription_account_id = global_account_id, global_account_id = 'ga-3' WHERE id IN ('a', 'e')`); err != nil {
			s.Fatal(err)
		}

		for name, test := range map[string]struct {
			reason, account string
			limit           int
			want            []string
		}{
			"Moved":  {"an instance that has moved still uses the account that ordered it", "ga-2", 5, []string{"d", "e"}},
			"Target": {"the account to which instances have moved", "ga-3", 5, []string{"a", "e"}},
			"Limit":  {"at most the limit", "ga-3", 1, []string{"a"}},
			"None":   {"an unknown account", "ga-4", 5, []string{}},
			"Empty":  {"instances that have not moved name no second account", "", 5, []string{}},
		} {
			found, err := s.store.OfAccount(s.Context(), s.db.Reader(), test.account, test.limit)

			got := []string{}
			for _, instance := range found {
				got = append(got, instance.ID)
			}

			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				s.Errorf("%s: %s: %v -want +got\n%s", name, test.reason, err, diff)
			}
		}
	})
}
