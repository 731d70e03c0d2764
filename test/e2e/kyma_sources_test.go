package e2e

import (
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// sources is an HTTPS server with manifests. certificate is the path of its certificate.
type sources struct {
	*testing.T

	url, certificate string
	contents         map[string]string
}

func startSources(t *testing.T) *sources {
	t.Helper()

	s := &sources{T: t, contents: map[string]string{}, certificate: filepath.Join(t.TempDir(), "ca.pem")}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(s.contents[r.URL.Path]))
	}))
	t.Cleanup(server.Close)

	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(s.certificate, encoded, 0o600); err != nil {
		t.Fatal(err)
	}

	s.url = server.URL

	return s
}

// component returns a component whose manifest is a ConfigMap with text in its name.
func (s *sources) component(name, text string) map[string]any {
	path := "/" + name + "/" + text
	s.contents[path] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%s}\ndata: {size: \"${size}\"}\n", name, text)

	one := component(name, "kyma-system", "size", "1")
	one["sourceURL"] = fmt.Sprintf("%s%s#sha256=%x", s.url, path, sha256.Sum256([]byte(s.contents[path])))

	return one
}

// names returns the names of the ConfigMaps on the runtime that come from components with sources.
func (s *sources) names(c clusters, runtimeID string) []string {
	found := []string{}

	list, err := c.runtimeClient(runtimeID).CoreV1().ConfigMaps("kyma-system").List(c.Context(), metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}

	for _, one := range list.Items {
		if strings.HasPrefix(one.Name, "added-") || strings.HasPrefix(one.Name, "eventing") {
			found = append(found, one.Name+" "+one.Data["size"])
		}
	}

	return found
}

// TestComponentsOfOtherSources runs testSources with the Provisioner's own installer.
func TestComponentsOfOtherSources(t *testing.T) {
	t.Parallel()

	testSources(t, projectOf(harness.StartGarden(t, 200*time.Millisecond)), func(string, ...string) {})
}

// testSources installs, changes and removes components whose manifests come from sources other than a release. After each
// installation, it calls check with the runtime's components that have such a source.
func testSources(t *testing.T, garden project, check func(runtimeID string, components ...string), configure ...func(*provisioner.Config)) {
	t.Helper()

	s := startSources(t)
	c := newClusters(t, garden, append(configure, func(config *provisioner.Config) {
		config.Kyma.ReleasesPath = filepath.Join("..", "..", "resources", "releases")
		config.Kyma.SourcesCachePath, config.Kyma.SourcesCAFile, config.Kyma.SourcesNetworks = t.TempDir(), s.certificate, []string{"127.0.0.1/32"}
	})...)

	created := c.mustSend(provisionRuntime, map[string]any{"config": map[string]any{
		"runtimeInput": map[string]any{"name": "mine"}, "kymaConfig": kymaOf("1.0.0", s.component("added", "first"), s.component("eventing", "own")),
		"clusterConfig": map[string]any{"gardenerConfig": clusterOf("gcp")},
	}})
	c.wantSucceeded(created.ID)

	wantNames := func(reason string, components []string, names ...string) {
		t.Helper()

		if diff := cmp.Diff(names, s.names(c, created.RuntimeID), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: -want +got\n%s", reason, diff)
		}

		check(created.RuntimeID, components...)
	}

	wantNames("a new component, and one of the release", []string{"added", "eventing"}, "added-first 1", "eventing-own 1")

	upgrade := func(components ...map[string]any) operationStatus {
		return c.mustSend(upgradeRuntime, map[string]any{"id": created.RuntimeID, "config": map[string]any{"kymaConfig": kymaOf("1.0.0", components...)}})
	}

	released := component("eventing", "kyma-system")
	released["conflictStrategy"] = "Replace" // the release has no value named size
	c.wantSucceeded(upgrade(s.component("added", "second"), released).ID)
	wantNames("another source, and the manifests of the release", []string{"added", "eventing"}, "added-second 1", "eventing ")

	changed := s.component("added", "third")
	s.contents["/added/third"] = "changed"
	c.waitForMessage(upgrade(changed).ID, "check the file, or correct the digest in the order")
	wantNames("the digest differs", []string{"added", "eventing"}, "added-second 1", "eventing ")
	c.wantSucceeded(upgrade().ID)
	wantNames("nothing is ordered", nil)
}
