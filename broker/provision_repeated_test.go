package broker_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

func TestRepeatedProvision(t *testing.T) {
	onEach(t, func(b *fixture) {
		first := b.want("a new instance", b.put(instanceID, order()), 202)

		again := order(with("context", map[string]any{"instance_name": "renamed", "platform": "cloudfoundry"}))
		again = strings.Replace(again, `"autoScalerMin":4,"region":"eu-west-1"`, `"region":"eu-west-1", "autoScalerMin": 4.0`, 1)

		second := b.want("D10: repeated while it is pending", b.put(instanceID, again), 202)
		if diff := cmp.Diff(first.Body, second.Body); diff != "" {
			b.Errorf("D10: a repeated request got another response: -first +second\n%s", diff)
		}

		b.move(first.text("operation"), process.InProgress)

		third := b.want("D10: repeated during the creation", b.put(instanceID, again), 202)
		if third.text("operation") != first.text("operation") {
			b.Errorf("D10: the repeated request got another operation: %s", third.Raw)
		}

		b.want("C1: repeated synchronously during the creation", b.do(call{method: "PUT", path: path(instanceID), body: order()}), 422, "AsyncRequired")

		b.move(first.text("operation"), process.Succeeded)

		ready := b.want("D12: repeated after the creation", b.put(instanceID, again), 200)

		delete(first.Body, "operation")

		if diff := cmp.Diff(first.Body, ready.Body); diff != "" {
			b.Errorf("D12: equal body without an operation: -want +got\n%s", diff)
		}

		b.want("D12: repeated synchronously after the creation", b.do(call{method: "PUT", path: path(instanceID), body: order()}), 200)

		if b.wakes.Load() != 1 || len(b.carried(instanceID)) != 1 {
			b.Errorf("repeated requests started operations: %d wake-ups, operations %+v", b.wakes.Load(), b.carried(instanceID))
		}
	})
}

func TestDifferentOrderForTheSameID(t *testing.T) {
	cases := map[string]struct {
		reason string
		path   string
		body   string
	}{
		"Plan":         {reason: "another plan", body: order(with("plan_id", planGCP), with("parameters", nil))},
		"Parameters":   {reason: "other parameters", body: order(with("parameters", map[string]any{"region": "eu-west-1"}))},
		"NoParameters": {reason: "no parameters", body: order(with("parameters", nil))},
		"Organization": {reason: "another organization", body: order(with("organization_guid", "other"))},
		"Space":        {reason: "another space", body: order(with("space_guid", "other"))},
		"Region":       {reason: "another platform region", path: "/oauth/cf-us10", body: order()},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			operation := b.want("the first order", b.put(instanceID, order()), 202).text("operation")
			other := call{method: "PUT", path: test.path + path(instanceID) + "?accepts_incomplete=true", body: test.body}

			b.want(test.reason+" during the creation", b.do(other), 409)
			b.move(operation, process.Succeeded)
			b.want(test.reason+" after the creation", b.do(other), 409)
			b.want("A15: the instance is unchanged", b.put(instanceID, order()), 200)
		})
	}
}

func TestFailedProvisionIsNotRepeated(t *testing.T) {
	for _, state := range []process.State{process.Failed, process.Canceled} {
		t.Run(string(state), func(t *testing.T) {
			b := newFixture(t)
			operation := b.want("the first order", b.put(instanceID, order()), 202).text("operation")
			b.move(operation, state)

			got := b.want("a failed creation is neither reported as ready nor repeated", b.put(instanceID, order()), 409)
			if !strings.Contains(got.text("description"), "Delete it") {
				b.Errorf("the description lacks the remedy: %s", got.Raw)
			}

			b.want("another order with the same ID", b.put(instanceID, order(with("parameters", nil))), 409)

			b.deleted(instanceID)
			b.want("J12, D18: the ID is free after the deletion", b.put(instanceID, order()), 202)
		})
	}
}

func TestAnIDIsFreeAgainAfterItsDeletion(t *testing.T) {
	onEach(t, func(b *fixture) {
		first := b.provisioned(instanceID)
		shoot := b.stored(instanceID).ShootName

		deletion := b.want("a deletion", b.remove(instanceID), 202).text("operation")
		b.want("C4: during the deletion", b.put(instanceID, order()), 422, "ConcurrencyError")
		b.forget(instanceID)
		b.want("C4: until the deletion is recorded", b.put(instanceID, order()), 422, "ConcurrencyError")
		b.move(deletion, process.Succeeded)

		second := b.want("a new order with other values", b.put(instanceID, order(with("parameters", nil))), 202).text("operation")
		if first == second || b.stored(instanceID).ShootName == shoot {
			b.Error("the new instance reused values of the old one")
		}

		b.want("C8: the new creation is reported", b.poll(instanceID, second), 200)
		b.wantState("C8: the old deletion has succeeded", b.poll(instanceID, deletion), "succeeded")
		b.move(second, process.Succeeded)
		b.want("the instance is ready", b.get(instanceID), 200)
	})
}

func TestNoInstanceAfterFailedDeletion(t *testing.T) {
	b := newFixture(t)
	b.provisioned(instanceID)
	b.move(b.remove(instanceID).text("operation"), process.Failed)

	got := b.want("a failed deletion may have removed parts of the instance", b.put(instanceID, order()), 409)
	if !strings.Contains(got.text("description"), "Delete it again") {
		b.Errorf("the description lacks the remedy: %s", got.Raw)
	}
}

// TestNewestOperationOfAnInstance reads an instance together with its newest operation. A repeated order needs both
// to detect that the instance was deleted and ordered again between two reads.
func TestNewestOperationOfAnInstance(t *testing.T) {
	onEach(t, func(b *fixture) {
		kinds := []string{environment.KindProvision, environment.KindDeprovision}
		newest := func() string {
			_, operation, err := b.instances.GetWithNewest(b.Context(), b.options.DB.Reader(), instanceID, kinds...)
			if err != nil {
				b.Error(err)
			}

			return operation
		}

		creation := b.provisioned(instanceID)
		b.want("an update", b.patch(instanceID, with("parameters", with("autoScalerMin", 6))), 202)

		if got := newest(); got != creation {
			b.Errorf("R1: the newest operation of the kinds is %s, want %s", got, creation)
		}

		deletion := b.want("a deletion", b.remove(instanceID), 202).text("operation")
		if got := newest(); got != deletion {
			b.Errorf("R1: the newest operation of the kinds is %s, want %s", got, deletion)
		}

		b.forget(instanceID)

		if _, _, err := b.instances.GetWithNewest(b.Context(), b.options.DB.Reader(), instanceID, kinds...); !errors.Is(err, storage.ErrNotFound) {
			b.Errorf("R1: a deleted instance is still found: %v", err)
		}
	})
}
