package operator_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

func TestRefusedInterventionsChangeNothing(t *testing.T) {
	probing := at("post_actions", "Probe", true, "start", "create_runtime", "check_runtime")
	succeeded, failed := process.Succeeded, process.Failed

	cases := map[string]struct {
		reason   string
		verb     string
		prepare  func(b *bench) string
		body     string
		want     int
		wantText string
	}{
		"cancel what ended":    {"it cannot be undone", "cancel", ended(succeeded), because, 409, "it is succeeded"},
		"cancel with a step":   {"a step says that a skip was meant", "cancel", ended(failed), `{"reason": "x", "step": "Probe"}`, 400, "for a skip or a retry"},
		"cancel what is not":   {"there is no such operation", "cancel", unknown("x"), because, 404, "no such operation"},
		"an id with a slash":   {"an id is taken as it comes", "retry", unknown("a%2Fb"), because, 404, "no such operation"},
		"an id with a zero":    {"no database has such an id", "retry", unknown("%00"), because, 400, "path"},
		"a very long id":       {"an id is no more than a key", "skip", unknown(strings.Repeat("x", 5000)), because, 404, "no such operation"},
		"retry what runs":      {"it tries again by itself", "retry", running(probing), because, 409, "in progress"},
		"retry what succeeded": {"there is nothing left to do", "retry", ended(succeeded), because, 409, "succeeded"},
		"retry without what is needed": {
			"what follows needs what it does", "retry", failedAt(at("create_runtime", "Order", true, "start")), `{"reason": "x", "step": "Order"}`,
			409, "cannot be left out",
		},
		"retry without another step": {"only what failed can be in the way", "retry", failedAt(probing), `{"reason": "x", "step": "Check"}`, 409, "not at step"},
		"retry what is past": {
			"operations of an instance run in the order in which they were accepted", "retry", func(b *bench) string {
				id := b.instance("one", failed)
				b.operation("one", environment.KindDeprovision, process.Pending)

				return id
			}, because, 409, "A later operation of the instance has taken its place",
		},
		"retry of what is gone": {
			"nothing is left of the instance", "retry", func(b *bench) string {
				b.instance("one", succeeded)
				id := b.operation("one", environment.KindDeprovision, failed)
				b.drop("one")

				return id
			}, because, 409, "gone",
		},
		"retry of a kind that is gone": {
			"nobody would carry it, and no engine would start beside it", "retry", func(b *bench) string {
				b.instance("one", succeeded)

				return b.operation("one", "upgrade", failed)
			}, because, 409, "no process any more for operations of kind upgrade",
		},
		"retry of what cannot be read": {
			"the key is missing, which is told", "retry", func(b *bench) string {
				id := b.instance("one", failed)
				b.spoil(id)

				return id
			}, because, 409, "APP_DATABASE_SECRET_KEYS",
		},
		"skip what waits":         {"it has no step yet", "skip", func(b *bench) string { return b.instance("one", process.Pending) }, because, 409, "pending"},
		"skip what is canceled":   {"it ends at its next safe point", "skip", canceling(probing), because, 409, "canceling"},
		"skip what ended":         {"it is at no step", "skip", ended(failed), because, 409, "failed"},
		"skip before any step":    {"it was claimed this moment", "skip", running(at("", "", false)), because, 409, "not come to a step"},
		"skip what is needed":     {"what follows needs what it does", "skip", running(at("create_runtime", "Order", true, "start")), because, 409, "cannot be left out"},
		"skip another step":       {"it has gone on since the operator looked", "skip", running(probing), `{"reason": "x", "step": "Check"}`, 409, `not at step "Check" but at "Probe"`},
		"skip an odd step":        {"a step is only compared", "skip", running(probing), `{"reason": "x", "step": "\u0000"}`, 409, "not at step"},
		"skip of a finished step": {"the next stage begins at this moment", "skip", running(at("post_actions", "Probe", false, "post_actions")), because, 409, "has gone on"},
		"no body":                 {"others want to know why", "cancel", running(probing), ``, 400, "reason is missing"},
		"null":                    {"others want to know why", "cancel", running(probing), `null`, 400, "reason is missing"},
		"no reason":               {"others want to know why", "cancel", running(probing), `{"step": ""}`, 400, "reason is missing"},
		"blank reason":            {"others want to know why", "cancel", running(probing), `{"reason": " \n\t\u0000\u200b"}`, 400, "reason is missing"},
		"long reason":             {"nobody reads a novel", "cancel", running(probing), `{"reason": "` + strings.Repeat("ü", 501) + `"}`, 400, "501 characters, 500 at most"},
		"another field":           {"who misspells a field means something by it", "cancel", running(probing), `{"reason": "x", "Why": "y"}`, 400, "cannot be read"},
		"two bodies":              {"which one is meant is not known", "cancel", running(probing), because + because, 400, "cannot be read"},
		"no JSON":                 {"it is not guessed", "cancel", running(probing), `reason=x`, 400, "cannot be read"},
		"a reason of a number":    {"it is not guessed", "cancel", running(probing), `{"reason": 7}`, 400, "cannot be read"},
		"too long a body":         {"it is not read to its end", "cancel", running(probing), `{"reason": "` + strings.Repeat("x", 70000) + `"}`, 413, "too large"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			id := c.prepare(b)
			before := b.everything()

			got := b.want(c.reason, b.intervene(c.verb, id, c.body), c.want)
			if text := read[operatorapi.Error](b, got).Description; !strings.Contains(text, c.wantText) {
				b.Errorf("\n%s\nthe answer is %q, want %q in it", c.reason, text, c.wantText)
			}

			if diff := cmp.Diff(before, b.everything()); diff != "" || b.woken != 0 {
				b.Errorf("\n%s\na refusal changes something, or wakes the engine: -before +after\n%s", c.reason, diff)
			}

			if lines := b.audited(); len(lines) != 1 || lines[0].Level != "warning" || lines[0].User != "operator" ||
				!strings.Contains(lines[0].Message, "not ") {
				b.Errorf("\n%s\nthe log has %+v", c.reason, lines)
			}
		})
	}
}

func ended(state process.State) func(*bench) string {
	return func(b *bench) string { return b.instance("one", state) }
}

func unknown(id string) func(*bench) string { return func(*bench) string { return id } }

func running(change func(*process.Progress)) func(*bench) string {
	return func(b *bench) string {
		b.instance("one", process.Succeeded)

		return b.operation("one", environment.KindProvision, process.InProgress, change)
	}
}

func failedAt(change func(*process.Progress)) func(*bench) string {
	return func(b *bench) string {
		b.instance("one", process.Succeeded)

		return b.operation("one", environment.KindProvision, process.Failed, change)
	}
}

func canceling(change func(*process.Progress)) func(*bench) string {
	return func(b *bench) string {
		id := running(change)(b)

		b.inTx(func(tx storage.Tx) error {
			_, err := b.operations.CancelOne(b.Context(), tx, id, "a test", b.clock.Now())

			return err
		})

		return id
	}
}
