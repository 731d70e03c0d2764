package broker_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
)

func TestFetchAvailability(t *testing.T) {
	onEach(t, func(b *fixture) {
		b.want("E3: unknown", b.get(instanceID), 404)

		creation := b.want("a creation", b.put(instanceID, order()), 202).text("operation")
		b.want("E4: pending", b.get(instanceID), 404)
		b.move(creation, process.InProgress)
		b.want("E4: during the creation", b.get(instanceID), 404)
		b.move(creation, process.Succeeded)
		b.want("the result is reported", b.poll(instanceID, creation), 200)
		b.want("E2, C16: available immediately", b.get(instanceID), 200)

		deletion := b.want("a deletion", b.remove(instanceID), 202).text("operation")
		b.want("E10: during the deletion", b.get(instanceID), 422, "ConcurrencyError")
		b.move(deletion, process.Failed)
		b.want("still there", b.get(instanceID), 200)

		deletion = b.want("another deletion", b.remove(instanceID), 202).text("operation")
		b.forget(instanceID)
		b.want("E10: until the deletion is recorded", b.get(instanceID), 422, "ConcurrencyError")
		b.move(deletion, process.Succeeded)
		b.want("E9: gone", b.get(instanceID), 404)
	})
}

func TestAFailedCreationCannotBeFetched(t *testing.T) {
	b := newFixture(t)
	b.move(b.put(instanceID, order()).text("operation"), process.Failed)
	b.want("E4: an unknown instance", b.get(instanceID), 404)
}

func TestFetchedFields(t *testing.T) {
	b := newFixture(t)

	secretive := map[string]any{"globalaccount_id": "ga", "sm_operator_credentials": smCredentials(with("clientsecret", "hunter2"))}
	b.move(b.want("an order", b.put(instanceID, order(with("context", secretive))), 202).text("operation"), process.Succeeded)

	got := b.want("E6", b.get(instanceID), 200)
	want := map[string]any{
		"service_id": serviceID, "plan_id": planAWS,
		"dashboard_url":    "https://dashboard.example.com/?kubeconfigID=" + instanceID,
		"parameters":       map[string]any{"region": "eu-west-1", "autoScalerMin": 4.0},
		"maintenance_info": map[string]any{"version": "1.0.0"},
		"metadata": map[string]any{"labels": map[string]any{
			"Name": "0f5b2c7e", "KubeconfigURL": "https://broker.example.com/kubeconfig/" + instanceID,
		}},
	}

	if diff := cmp.Diff(want, got.Body); diff != "" {
		b.Errorf("E6: body: -want +got\n%s", diff)
	}

	if strings.Contains(got.Raw, "hunter2") {
		b.Error("E7: the response contains a secret")
	}
}

// TestFetchAfterAnUpdateOfOIDC changes one field of oidc. A fetch must show the other fields, too, because the cluster keeps them.
func TestFetchAfterAnUpdateOfOIDC(t *testing.T) {
	b := newFixture(t)
	b.move(b.put(instanceID, order(with("parameters", map[string]any{
		"region": "eu-west-1", "oidc": map[string]any{"clientID": "cluster", "issuerURL": "https://issuer.example.com"},
	}))).text("operation"), process.Succeeded)

	change := with("parameters", with("oidc", map[string]any{"groupsClaim": "teams"}))
	b.succeed(b.want("an update", b.patch(instanceID, change), 202).text("operation"))

	want := map[string]any{"clientID": "cluster", "issuerURL": "https://issuer.example.com", "groupsClaim": "teams"}
	if diff := cmp.Diff(want, b.get(instanceID).Body["parameters"].(map[string]any)["oidc"]); diff != "" {
		t.Errorf("oidc: -want +got\n%s", diff)
	}

	b.want("the update is already applied", b.patch(instanceID, change), 200)
}

func TestParametersAreAnObject(t *testing.T) {
	b := newFixture(t)
	b.move(b.put(instanceID, order(with("parameters", nil))).text("operation"), process.Succeeded)

	if diff := cmp.Diff(map[string]any{}, b.get(instanceID).Body["parameters"]); diff != "" {
		b.Errorf("parameters: -want +got\n%s", diff)
	}
}

func TestIDsAreHints(t *testing.T) {
	b := newFixture(t)
	b.provisioned(instanceID)
	b.want("right ones", b.do(call{method: "GET", path: path(instanceID) + "?" + ids[1:]}), 200)
	b.want("wrong ones", b.do(call{method: "GET", path: path(instanceID) + "?service_id=x&plan_id=y"}), 200)
}
