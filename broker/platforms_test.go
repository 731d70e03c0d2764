package broker_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/process"
)

func TestCloudFoundryRepeatsRequests(t *testing.T) {
	onEach(t, func(b *fixture) {
		// This platform sends no context and no parameters. It repeats PUT until the instance is ready, and DELETE until
		// the instance is gone.
		body := order(with("context", nil), with("parameters", nil))
		operation := b.want("the first request", b.put(instanceID, body), 202).text("operation")

		for range 3 {
			if got := b.want("a repeated request", b.put(instanceID, body), 202).text("operation"); got != operation {
				b.Fatalf("the repeated request got operation %s, want %s", got, operation)
			}

			b.want("a poll", b.do(call{method: "GET", path: path(instanceID) + "/last_operation?operation=" + operation + ids}), 200)
			b.move(operation, process.InProgress)
		}

		b.move(operation, process.Succeeded)
		b.want("ready", b.put(instanceID, body), 200)

		operation = b.want("the first request", b.remove(instanceID), 202).text("operation")

		for range 3 {
			if got := b.want("a repeated request", b.remove(instanceID), 202).text("operation"); got != operation {
				b.Fatalf("the repeated request got operation %s, want %s", got, operation)
			}

			b.move(operation, process.InProgress)
		}

		b.forget(instanceID)
		b.move(operation, process.Succeeded)
		b.want("gone", b.remove(instanceID), 410)
	})
}
