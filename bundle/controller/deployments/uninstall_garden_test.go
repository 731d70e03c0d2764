//go:build garden

package deployments_test

import (
	"slices"
	"strings"
	"testing"
)

// TestUninstallOrder verifies that the objects are removed in the reverse order of their installation.
func TestUninstallOrder(t *testing.T) {
	f := newFixture(t)
	f.create(f.content("1", deploymentManifest(f.name)+"---\n"+f.configMap("one", "1")+
		"apiVersion: v1\nkind: Service\nmetadata: {name: "+f.name+", namespace: default}\nspec: {ports: [{port: 80}]}\n---\n"+
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: "+f.name+"}\nrules: []\n"))

	// resources returns the resources of the objects to which the controller has sent requests, in their order.
	resources := func(method string) (found []string) {
		for _, call := range f.written() {
			parts := strings.Split(call, "/")
			if strings.HasPrefix(call, method+" ") && strings.HasPrefix(parts[len(parts)-1], f.name) && !strings.Contains(call, "/core.rukpak.io/") {
				found = append(found, parts[len(parts)-2])
			}
		}

		return found
	}

	f.settle()

	installed := resources("PATCH")
	if want := []string{"clusterroles", "configmaps", "services", "deployments"}; !slices.Equal(installed, want) {
		t.Fatalf("installed in the order %v, want %v", installed, want)
	}

	f.remove()

	removed := resources("DELETE")
	slices.Reverse(removed)

	if !slices.Equal(removed, installed) {
		t.Errorf("removed in the reverse order of %v, want that of %v", removed, installed)
	}
}
