package broker_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/process"
)

func TestM1CloudFoundryRepeatsItselfOnEveryTurn(t *testing.T) {
	onEach(t, func(b *bench) {
		// No context, no parameters, and PUT again and again until it is ready; then DELETE again and again until it is gone.
		body := order(with("context", nil), with("parameters", nil))
		operation := b.want("the first turn", b.put(instanceID, body), 202).text("operation")

		for range 3 {
			if got := b.want("another turn", b.put(instanceID, body), 202).text("operation"); got != operation {
				b.Fatalf("another operation: %s, not %s", got, operation)
			}

			b.want("a poll", b.do(call{method: "GET", path: path(instanceID) + "/last_operation?operation=" + operation + ids}), 200)
			b.move(operation, process.InProgress)
		}

		b.move(operation, process.Succeeded)
		b.want("ready", b.put(instanceID, body), 200)

		operation = b.want("the first turn", b.remove(instanceID), 202).text("operation")

		for range 3 {
			if got := b.want("another turn", b.remove(instanceID), 202).text("operation"); got != operation {
				b.Fatalf("another operation: %s, not %s", got, operation)
			}

			b.move(operation, process.InProgress)
		}

		b.forget(instanceID)
		b.move(operation, process.Succeeded)
		b.want("gone", b.remove(instanceID), 410)
	})
}

func TestM3KubernetesServiceCatalog(t *testing.T) {
	b := newBench(t)
	header := map[string]string{
		"X-Broker-API-Version":              "2.14",
		"X-Broker-API-Originating-Identity": "kubernetes eyJ1c2VybmFtZSI6Imt1YmUiLCJ1aWQiOiIiLCJncm91cHMiOltdfQ==",
	}
	context := map[string]any{"platform": "kubernetes", "clusterid": "c", "namespace": "n", "instance_name": "i"}

	operation := b.want("an order", b.do(call{
		method: "PUT", path: path(instanceID) + "?accepts_incomplete=true", header: header, body: order(with("context", context)),
	}), 202).text("operation")
	b.move(operation, process.Failed)

	// It cleans up what has failed.
	deletion := b.want("a deletion", b.do(call{
		method: "DELETE", path: path(instanceID) + "?accepts_incomplete=true" + ids, header: header,
	}), 202).text("operation")
	b.forget(instanceID)
	b.move(deletion, process.Succeeded)
	b.want("gone", b.do(call{method: "GET", path: path(instanceID) + "/last_operation?operation=" + deletion, header: header}), 410)
}

func TestM4ServiceManagerSpeaksTwoVersions(t *testing.T) {
	b := newBench(t)
	old := map[string]string{
		"X-Broker-API-Version": "2.13", "X-Broker-API-Originating-Identity": "service-manager eyJ1c2VybmFtZSI6InMifQ==",
	}
	newer := map[string]string{"X-Broker-API-Version": "2.14"}

	b.want("the catalog", b.do(call{method: "GET", path: "/v2/catalog", header: newer}), 200)

	operation := b.want("an order", b.do(call{
		method: "PUT", path: path(instanceID) + "?accepts_incomplete=true", header: old, body: order(),
	}), 202).text("operation")
	b.want("a poll", b.do(call{method: "GET", path: path(instanceID) + "/last_operation?operation=" + operation, header: old}), 200)
	b.move(operation, process.Succeeded)
	b.want("a fetch", b.do(call{method: "GET", path: path(instanceID), header: newer}), 200)
	b.want("a deletion", b.do(call{method: "DELETE", path: path(instanceID) + "?accepts_incomplete=true" + ids, header: old}), 202)
}

func TestM5OSBChecker(t *testing.T) {
	b := newBench(t)
	body := order(with("maintenance_info", map[string]any{}), with("bind_resource", map[string]any{}),
		with("previous_values", map[string]any{}))

	operation := b.want("empty objects are none", b.put(instanceID, body), 202).text("operation")
	b.want("it polls by the kind", b.poll(instanceID, "provision"), 200)
	b.move(operation, process.Succeeded)
	b.want("it polls by the kind", b.poll(instanceID, "provision"), 200)

	deletion := b.want("a deletion", b.remove(instanceID), 202).text("operation")
	b.want("it polls by the kind", b.poll(instanceID, "deprovision"), 200)
	b.forget(instanceID)
	b.move(deletion, process.Succeeded)
	b.want("it polls by the kind", b.poll(instanceID, "deprovision"), 410)
}

func TestK1K2K3Contexts(t *testing.T) {
	b := newBench(t)

	for platform, context := range map[string]map[string]any{
		"cf": {
			"platform": "cloudfoundry", "organization_guid": "o", "organization_name": "on", "space_guid": "s", "space_name": "sn",
			"instance_name": "in", "organization_annotations": map[string]any{"a.b/c": "d"}, "space_annotations": map[string]any{},
		},
		"k8s": {"platform": "kubernetes", "namespace": "n", "clusterid": "c", "instance_name": "in", "namespace_annotations": map[string]any{}},
		"x":   {"platform": "x", "anything": []int{1}},
		"no":  {},
	} {
		b.want("every context is taken: "+platform, b.put(platform, order(with("context", context))), 202)
	}
}
