package catalog_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

func kubeconfig(server, user string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}],
		users: [{name: u, user: %s}], contexts: [{name: c, context: {cluster: c, user: u}}]}`, server, user)
}

func ownParameters(kubeconfig string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"name":"mine","kubeconfig":%q,"shootName":"s","shootDomain":"s.example.com"}`,
		base64.StdEncoding.EncodeToString([]byte(kubeconfig))))
}

func TestOwnCluster(t *testing.T) {
	t.Parallel()

	first, second := kubeconfig("https://api.example.com", "{token: hush}"), kubeconfig("https://other.example.com", "{token: hush}")

	got, err := resolve(plan(t, planOwnCluster), order{InstanceID: instanceID, Parameters: ownParameters(first)})
	if err != nil {
		t.Fatal(err)
	}

	want := resolved{Name: "mine", Cluster: environment.Cluster{Own: &environment.OwnCluster{
		Kubeconfig: secret.Stored(first), ShootName: "s", ShootDomain: "s.example.com",
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resolved: -want +got\n%s", diff)
	}

	if printed := fmt.Sprintf("%v %+v %#v", got, *got.Cluster.Own, *got.Cluster.Own); strings.Contains(printed, "hush") {
		t.Errorf("printing shows the kubeconfig: %s", printed)
	}

	changed, err := plan(t, planOwnCluster).Update(orderedAs(got.Cluster, `{}`),
		json.RawMessage(fmt.Sprintf(`{"kubeconfig":%q}`, base64.StdEncoding.EncodeToString([]byte(second)))))
	if own := changed.Cluster.Own; err != nil || own.Kubeconfig != secret.Stored(second) || own.ShootName != "s" {
		t.Errorf("after an update with another kubeconfig, the cluster is %+v, %v", own, err)
	}

	if got.Cluster.Own.Kubeconfig != secret.Stored(first) {
		t.Error("the update changed its argument")
	}
}

func TestOwnClusterRejects(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason     string
		parameters json.RawMessage
		want       string
	}{
		"Nothing":   {"the kubeconfig is required", json.RawMessage(`{}`), "parameters: kubeconfig, shootName and shootDomain are missing"},
		"NotBase64": {"the kubeconfig is base64-encoded", json.RawMessage(`{"kubeconfig":"hush!","shootName":"s","shootDomain":"d"}`), "kubeconfig: must be valid base64"},
		"Rubbish":   {"the content must be a kubeconfig", ownParameters("hush: [hush"), "it is not a kubeconfig"},
		"Empty":     {"the kubeconfig must name a cluster", ownParameters("{}"), "its current context is missing or incomplete"},
		"Program":   {"no programs of tenants run in the broker", ownParameters(kubeconfig("https://x", "{exec: {command: hush, apiVersion: client.authentication.k8s.io/v1}}")), "it refers to exec plugins, auth providers or files"},
		"File":      {"no files of the broker are sent to a tenant's server", ownParameters(kubeconfig("https://x", "{tokenFile: /etc/hush}")), "it refers to exec plugins, auth providers or files"},
		"InClear":   {"credentials require TLS", ownParameters(kubeconfig("http://x", "{token: hush}")), "does not have the form https://"},
		"Region":    {"the tenant's cluster has no region", json.RawMessage(`{"kubeconfig":"x","shootName":"s","shootDomain":"d","region":"r"}`), "region: the plan has no such parameter"},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := resolve(plan(t, planOwnCluster), order{InstanceID: instanceID, Parameters: test.parameters})
			if text := failure.Of(err).Text; !failure.Is(err, failure.Invalid) || !strings.Contains(text, test.want) {
				t.Errorf("\n%s\nwant an error of kind invalid with %q, got %v", test.reason, test.want, err)
			}

			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("\n%s\nthe error quotes the kubeconfig: %v", test.reason, err)
			}
		})
	}
}

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()

	cases := map[string]struct{ reason, given, want string }{
		"Kubeconfig": {"the kubeconfig gives access to the cluster", `{"kubeconfig":"hush","shootName":"s"}`, `{"shootName":"s"}`},
		"Others":     {"other parameters are shown as sent", `{"b":1, "a":2}`, `{"b":1, "a":2}`},
		"None":       {"absent parameters stay absent", ``, ``},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := string(catalog.WithoutSecrets(json.RawMessage(test.given))); got != test.want {
				t.Errorf("%s: got %s, want %s", test.reason, got, test.want)
			}
		})
	}
}
