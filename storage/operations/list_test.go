package operations_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// put stores an operation that is not due, and sets the given columns of its row.
func (b fixture) put(id string, state process.State, set string, args ...any) {
	b.Helper()
	b.accept(id, "instance of "+id)

	for _, statement := range []storage.Statement{
		{Text: `UPDATE operations SET next_run_at = ? WHERE id = ?`, Args: []any{storage.At(start.Add(24 * time.Hour)), id}},
		{Text: `UPDATE operations SET state = ?` + set + ` WHERE id = ?`, Args: slices.Concat([]any{state}, args, []any{id})},
	} {
		if _, err := storage.Exec(b.Context(), b.db.Writer(), statement.Text, statement.Args...); err != nil {
			b.Fatal(err)
		}
	}
}

func TestFilters(t *testing.T) {
	now := start.Add(10 * time.Hour)

	each(t, func(b fixture) {
		b.put("healthy", process.InProgress, `, started_at = ?`, storage.At(now.Add(-59*time.Minute)))
		b.put("long", process.InProgress, `, started_at = ?`, storage.At(now.Add(-time.Hour)))
		b.put("delayed", process.InProgress, `, problem_message = 'no quota'`)
		b.put("left", process.InProgress, `, next_run_at = ?`, storage.At(now.Add(-time.Minute)))
		b.put("due", process.InProgress, `, next_run_at = ?`, storage.At(now.Add(-30*time.Second)))
		b.put("running", process.InProgress, `, next_run_at = ?, lease_owner = 'replica'`, storage.At(now.Add(-time.Hour)))
		b.put("canceling", process.Canceling, `, problem_message = 'no quota'`)
		b.put("pending", process.Pending, `, next_run_at = ?`, storage.At(start))
		b.put("failed", process.Failed, `, problem_message = 'no quota', kind = 'update'`)
		b.put("old", process.Succeeded, `, created_at = ?`, storage.At(start.Add(-time.Hour)))
		b.put("new", process.Canceled, `, created_at = ?`, storage.At(start.Add(time.Hour)))

		for name, c := range map[string]struct {
			reason string
			filter operations.Filter
			want   []string
		}{
			"stuck":  {"an error, no worker, or too long", operations.Filter{StuckAt: now}, []string{"delayed", "left", "long"}},
			"states": {"one of several states", operations.Filter{States: []process.State{process.Failed, process.Canceled, process.Pending}}, []string{"failed", "new", "pending"}},
			"kinds":  {"one of several kinds", operations.Filter{Kinds: []string{"update", "none"}}, []string{"failed"}},
			"since":  {"the start is included", operations.Filter{Since: start.Add(time.Hour)}, []string{"new"}},
			"until":  {"the end is excluded", operations.Filter{Until: start}, []string{"old"}},
			"instances": {
				"those that a query returns",
				operations.Filter{Instances: storage.Statement{Text: `SELECT instance_id FROM operations WHERE id = ?`, Args: []any{"old"}}, States: []process.State{process.Succeeded}},
				[]string{"old"},
			},
		} {
			counted, err := b.store.Count(b.Context(), c.filter)
			if err != nil || counted != len(c.want) {
				b.Errorf("%s: counted %d, %v, want %d", name, counted, err, len(c.want))
			}

			c.filter.Limit = 99

			found, err := b.store.List(b.Context(), c.filter)
			if err != nil {
				b.Fatal(err)
			}

			got := []string{}
			for _, record := range found {
				got = append(got, record.ID)
			}

			slices.Sort(got)

			if diff := cmp.Diff(c.want, got); diff != "" {
				b.Errorf("%s: %s: -want +got\n%s", name, c.reason, diff)
			}
		}
	})
}
