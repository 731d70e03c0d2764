package applier

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// earlierInventory is an inventory of a Provisioner release in which only runtimes had inventories.
const earlierInventory = `{"cluster":"here","runtime":"runtime-1","entries":[
  {"name":"","objects":[{"group":"apiextensions.k8s.io","version":"v1","kind":"CustomResourceDefinition","name":"things.example.com"}]},
  {"name":"essentials","objects":[{"version":"v1","kind":"ConfigMap","namespace":"kyma-system","name":"settings"}],
   "former":[{"version":"v1","kind":"Secret","namespace":"kyma-system","name":"old"}],"applied":"d1","ready":true}]}`

// TestEarlierInventory reads the inventory of a cluster that an earlier release of the Provisioner installed, stores it again, and
// verifies that the earlier release could still read it.
func TestEarlierInventory(t *testing.T) {
	cluster := newCluster("here", newSecret("environment-broker-installation", map[string][]byte{keyContent: packed(t, earlierInventory)}))
	found := mustLoad(t, cluster, "runtime-1")
	want := []*entry{
		{Objects: []ref{{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "things.example.com"}}},
		{
			Name: "essentials", Objects: []ref{{Version: "v1", Kind: "ConfigMap", Namespace: "kyma-system", Name: "settings"}},
			Former:  []ref{{Version: "v1", Kind: "Secret", Namespace: "kyma-system", Name: "old"}},
			Applied: "d1", Ready: true,
		},
	}

	if diff := cmp.Diff(want, found.Entries); diff != "" {
		t.Errorf("the earlier inventory, -want +got:\n%s", diff)
	}

	found.mustSave(t, cluster)

	if mustLoad(t, cluster, "runtime-1").differs() {
		t.Error("an inventory that was only read differs from the stored one")
	}

	stored := secrets(t, cluster)
	if len(stored) != 1 || stored[0].Name != "environment-broker-installation" {
		t.Fatalf("the inventory is in other Secrets: %v", stored)
	}

	earlier, again := inventory{}, inventory{}
	if err := unpack(packed(t, earlierInventory), &earlier); err != nil {
		t.Fatal(err)
	}

	if err := unpack(stored[0].Data[keyContent], &again); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(earlier, again, cmpopts.IgnoreUnexported(inventory{})); diff != "" {
		t.Errorf("the stored inventory, -want +got:\n%s", diff)
	}
}

// TestInventoriesOfOwners verifies that two owners on one cluster do not see each other's inventory.
func TestInventoriesOfOwners(t *testing.T) {
	cluster := newCluster("here")
	owners := []Owner{Runtime("r"), BundleDeployment("r"), BundleDeployment("other")}

	for _, owner := range owners {
		made, err := load(t.Context(), cluster, owner)
		if err != nil {
			t.Fatal(err)
		}

		made.entry(owner.title)
		made.mustSave(t, cluster)
	}

	for _, owner := range owners {
		found, err := load(t.Context(), cluster, owner)
		if err != nil {
			t.Fatal(err)
		}

		if len(found.Entries) != 1 || found.Entries[0].Name != owner.title {
			t.Errorf("%s has the entries %v", owner.title, found.Entries)
		}
	}
}
