package console

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/test/harness"
)

// script is a text that adds elements and attributes to a page that does not escape it in text, in an attribute or in a script. No
// page itself uses the names of this element and this attribute.
const script = `"'><xss-probe></xss-probe><script>window.hacked=1</script><img src=x onerror="window.hacked=1"></title></textarea>` +
	`<svg onload="alert(1)"> data-xss="1" ' onmouseover='window.hacked=1' data-xss='1 javascript:alert(1)// {{.}} ${1} `

// kept maps the text columns whose values are kept to the reasons.
func kept() map[string]string {
	const (
		state   = "the database or the store rejects other values"
		sealed  = "encrypted: the API fills it"
		key     = "rows refer to it: an instance with such an ID fills it"
		checked = "the broker reads no row of an instance whose column differs from the encrypted copy"
		list    = "a list of names in a form of its own"
	)

	return map[string]string{
		"operations.id": key, "operations.instance_id": key, "operations.state": state, "operations.payload": sealed, "operations.predecessor_id": key,
		"operations.finished_stages": list, "operations.skipped_steps": list, "operations.lease_owner": state, "operations.audit": "JSON",
		"operations.kind":       "the page of an operation depends on it",
		"timeline.operation_id": key, "step_attempts.operation_id": key,
		"instances.id": key, "instances.request": sealed, "instances.platform": sealed, "instances.shared_with": sealed, "instances.exclusive": key,
		"instances.global_account_id": checked, "instances.subaccount_id": checked, "instances.subscription_account_id": checked,
		"instances.provider": checked, "instances.runtime_id": checked, "instances.shoot_name": checked,
		"instance_labels.instance_id": key,
		"bindings.id":                 key, "bindings.instance_id": key, "bindings.state": state, "bindings.access": sealed, "bindings.operation_id": key,
		"instance_events.instance_id": key, "instance_event_intents.instance_id": key, "shoot_windows.instance_id": key,
		"shoot_windows.window_begin": "a time", "shoot_windows.window_end": "a time",
		"orchestrations.id": key, "orchestrations.state": state, "orchestrations.kind": "the conductor depends on it", "orchestrations.parameters": "JSON",
		"orchestration_targets.orchestration_id": key, "orchestration_targets.instance_id": key, "orchestration_targets.operation_id": key,
		"orchestration_targets.state": state, "orchestration_targets.former_ids": list,
		"audit.id": key, "audit.instance_id": key, "audit.operation_id": key, "audit.entry": "JSON",
		"outside_objects.instance_id": key, "outside_configurations.configuration": sealed, "outside_configurations.id": key,
		"webhooks.id": key, "webhooks.content": sealed, "webhook_deliveries.webhook_id": key, "endpoints.id": key,
		"events.instance_id": key, "events.operation_id": key, "events.orchestration_id": key, "account_cleanups.state": state,
	}
}

// outside lists the tables that no page reads, and the tables whose rows the services write all the time.
func outside() []string {
	return []string{"seal_counts", "write_checks", "audit_chain", "audit_chain_head", "new_events", "reports", "feed_place", "catalog_offered", "notification_lease"}
}

// column is a column in the broker's database.
type column struct {
	Table string `db:"table_name"`
	Name  string `db:"column_name"`
}

func (c column) String() string { return c.Table + "." + c.Name }

// poison prepends the script, with the name of the column in brackets, to every text in the database, and to every text in audit log
// entries. It returns the changed columns. Afterwards, operations do not continue.
func (f *fixture) poison() []string {
	f.Helper()

	db := harness.OpenDatabase(f, f.Settings.Database)

	columns := []column{}
	if err := sqlx.SelectContext(f.Context(), db.Reader(), &columns, `SELECT table_name, column_name FROM information_schema.columns
		WHERE table_schema = 'public' AND data_type = 'text' AND table_name NOT LIKE '%goose%' ORDER BY table_name, column_name`); err != nil {
		f.Fatal(err)
	}

	poisoned, exceptions := []string{}, kept()

	err := db.InTx(f.Context(), func(tx storage.Tx) error {
		// Disable triggers, because the audit log is append-only, and because each change would create an event.
		if _, err := tx.ExecContext(f.Context(), `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}

		if _, err := tx.ExecContext(f.Context(), `UPDATE operations SET next_run_at = $1`, time.Now().Add(24*time.Hour)); err != nil {
			return err
		}

		for _, each := range columns {
			if _, keep := exceptions[each.String()]; keep || slices.Contains(outside(), each.Table) {
				delete(exceptions, each.String())

				continue
			}

			if _, err := tx.ExecContext(f.Context(), fmt.Sprintf(`UPDATE %s SET %s = $1 || %s`, each.Table, each.Name, each.Name),
				script+"["+each.String()+"]"); err != nil {
				return fmt.Errorf("poisoning %s: %w", each, err)
			}

			poisoned = append(poisoned, each.String())
		}

		return f.poisonJSON(tx)
	})
	if err != nil {
		f.Fatal(err)
	}

	if len(exceptions) > 0 {
		f.Errorf("the database has no columns %v", exceptions)
	}

	return poisoned
}

// poisonJSON prepends the script to each text in the JSON of the audit log entries.
func (f *fixture) poisonJSON(tx storage.Tx) error {
	entries := []struct {
		ID    string `db:"id"`
		Entry string `db:"entry"`
	}{}
	if err := sqlx.SelectContext(f.Context(), tx, &entries, `SELECT id, entry FROM audit`); err != nil {
		return err
	}

	for _, each := range entries {
		var content any
		if err := json.Unmarshal([]byte(each.Entry), &content); err != nil {
			return err
		}

		changed, err := json.Marshal(prefixed(content, "audit.entry"))
		if err != nil {
			return err
		}

		if _, err := tx.ExecContext(f.Context(), `UPDATE audit SET entry = $1 WHERE id = $2`, string(changed), each.ID); err != nil {
			return err
		}
	}

	return nil
}

// prefixed returns a copy of a decoded JSON value in which the script is prepended to every text, even if no Go type has the field
// that contains it.
func prefixed(value any, place string) any {
	switch value := value.(type) {
	case string:
		return script + "[" + place + "]" + value
	case []any:
		for i := range value {
			value[i] = prefixed(value[i], place)
		}
	case map[string]any:
		for name := range value {
			value[name] = prefixed(value[name], place)
		}
	}

	return value
}

// placesIn returns the columns whose poisoned values occur in the text of a page.
func placesIn(text string) []string {
	found := []string{}

	for _, match := range regexp.MustCompile(`\[([a-z_]+\.[a-z_]+)\]`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(found, match[1]) && strings.Contains(match[1], ".") {
			found = append(found, match[1])
		}
	}

	return found
}
