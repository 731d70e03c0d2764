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

func TestRejectedInterventionsChangeNothing(t *testing.T) {
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
		"cancel when ended":           {"an ended operation has no next step", "cancel", ended(succeeded), onlyReason, 409, "it is succeeded"},
		"cancel with a step":          {"a step suggests that a skip was meant", "cancel", ended(failed), `{"reason": "x", "step": "Probe"}`, 400, "for a skip or a retry"},
		"cancel an unknown operation": {"the operation does not exist", "cancel", unknown("x"), onlyReason, 404, "operation does not exist"},
		"an ID with a slash":          {"an ID may contain any character", "retry", unknown("a%2Fb"), onlyReason, 404, "operation does not exist"},
		"an ID with NUL":              {"PostgreSQL cannot store NUL", "retry", unknown("%00"), onlyReason, 400, "path"},
		"a very long ID":              {"an ID has at most 255 bytes", "skip", unknown(strings.Repeat("x", 5000)), onlyReason, 400, "at most 255 bytes"},
		"retry when running":          {"the engine retries it", "retry", running(probing), onlyReason, 409, "in progress"},
		"retry when succeeded":        {"there is nothing to retry", "retry", ended(succeeded), onlyReason, 409, "succeeded"},
		"retry without a required step": {
			"later steps depend on it", "retry", failedAt(at("create_runtime", "Order", true, "start")), `{"reason": "x", "step": "Order"}`,
			409, "cannot be skipped",
		},
		"retry without another step": {"only the failed step can be skipped", "retry", failedAt(probing), `{"reason": "x", "step": "Check"}`, 409, "at step"},
		"retry a superseded operation": {
			"operations of an instance run in order of acceptance", "retry", func(b *bench) string {
				id := b.instance("one", failed)
				b.operation("one", environment.KindDeprovision, process.Pending)

				return id
			}, onlyReason, 409, "A later operation exists for this instance",
		},
		"retry after the deletion": {
			"the instance has been deleted", "retry", func(b *bench) string {
				b.instance("one", succeeded)
				id := b.operation("one", environment.KindDeprovision, failed)
				b.drop("one")

				return id
			}, onlyReason, 409, "no longer exists",
		},
		"retry after a change of the plan": {
			"the parameters were checked against the former plan", "retry", func(b *bench) string {
				b.instance("one", succeeded)
				id := b.failedChange(environment.KindUpdate, "one", func(*environment.Update) {})
				b.rewrite("one", func(instance *environment.Instance) { instance.PlanID = "another plan" })

				return id
			}, onlyReason, 409, "Order the change again",
		},
		"retry of a resumption after the expiry": {
			"an expired instance gets no runtime again", "retry", func(b *bench) string {
				b.instance("one", succeeded, func(instance *environment.Instance) { instance.Suspended = true })
				b.operation("one", environment.KindSuspend, succeeded)
				id := b.operation("one", environment.KindResume, process.Canceled)
				b.rewrite("one", func(instance *environment.Instance) { instance.ExpiredAt = instance.CreatedAt })

				return id
			}, onlyReason, 409, "has expired",
		},
		"retry of an unsupported kind": {
			"no engine would run the new operation", "retry", func(b *bench) string {
				b.instance("one", succeeded)

				return b.operation("one", "upgrade", failed)
			}, onlyReason, 409, "no longer supports operations of kind upgrade",
		},
		"retry without the key": {
			"the error names the variable with the keys", "retry", func(b *bench) string {
				id := b.instance("one", failed)
				b.spoil(id)

				return id
			}, onlyReason, 409, "APP_DATABASE_SECRET_KEYS",
		},
		"skip when pending":       {"a pending operation has no step", "skip", func(b *bench) string { return b.instance("one", process.Pending) }, onlyReason, 409, "pending"},
		"skip when canceling":     {"the operation ends before its next step", "skip", canceling(probing), onlyReason, 409, "canceling"},
		"skip when ended":         {"an ended operation has no current step", "skip", ended(failed), onlyReason, 409, "failed"},
		"skip before any step":    {"the operation has just been claimed", "skip", running(at("", "", false)), onlyReason, 409, "not started a step"},
		"skip a required step":    {"later steps depend on it", "skip", running(at("create_runtime", "Order", true, "start")), onlyReason, 409, "cannot be skipped"},
		"skip another step":       {"the operation has reached another step since the operator looked", "skip", running(probing), `{"reason": "x", "step": "Check"}`, 409, `at step "Probe", not at "Check"`},
		"skip an odd step":        {"a step name is compared, never stored", "skip", running(probing), `{"reason": "x", "step": "\u0000"}`, 409, "at step"},
		"skip of a finished step": {"the next stage is about to start", "skip", running(at("post_actions", "Probe", false, "post_actions")), onlyReason, 409, "finished the step"},
		"no body":                 {"others need to know why", "cancel", running(probing), ``, 400, "reason is missing"},
		"null":                    {"others need to know why", "cancel", running(probing), `null`, 400, "reason is missing"},
		"no reason":               {"others need to know why", "cancel", running(probing), `{"step": ""}`, 400, "reason is missing"},
		"blank reason":            {"others need to know why", "cancel", running(probing), `{"reason": " \n\t\u0000\u200b"}`, 400, "reason is missing"},
		"long reason":             {"a reason has a limit", "cancel", running(probing), `{"reason": "` + strings.Repeat("ü", 501) + `"}`, 400, "501 characters. At most 500"},
		"another field":           {"unknown fields are probably misspelled", "cancel", running(probing), `{"reason": "x", "Why": "y"}`, 400, "The body is invalid"},
		"two bodies":              {"two bodies are ambiguous", "cancel", running(probing), onlyReason + onlyReason, 400, "The body is invalid"},
		"no JSON":                 {"only JSON with the right types is accepted", "cancel", running(probing), `reason=x`, 400, "The body is invalid"},
		"a reason of a number":    {"only JSON with the right types is accepted", "cancel", running(probing), `{"reason": 7}`, 400, "The body is invalid"},
		"too long a body":         {"a body has a limit", "cancel", running(probing), `{"reason": "` + strings.Repeat("x", 70000) + `"}`, 413, "larger than 64 KiB"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			id := c.prepare(b)
			before := b.everything()

			got := b.want(c.reason, b.intervene(c.verb, id, c.body), c.want)
			if text := read[operatorapi.Error](b, got).Description; !strings.Contains(text, c.wantText) {
				b.Errorf("\n%s\nthe description is %q, want it to contain %q", c.reason, text, c.wantText)
			}

			if diff := cmp.Diff(before, b.everything()); diff != "" || b.woken != 0 {
				b.Errorf("\n%s\na rejected request changed rows or woke the engine: -before +after\n%s", c.reason, diff)
			}

			if lines := b.audited(); len(lines) != 1 || lines[0].Level != "warning" || lines[0].User != "operator" ||
				!strings.Contains(lines[0].Message, "not ") {
				b.Errorf("\n%s\nthe log contains %+v", c.reason, lines)
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
