package applier

import (
	"bytes"
	"compress/gzip"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/environment-broker/environment-broker/internal/failure"
)

func newCluster(uid types.UID, objects ...client.Object) client.Client {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: uid}}
	return fake.NewClientBuilder().WithObjects(append(objects, system)...).Build()
}

func (i *inventory) mustSave(t *testing.T, to client.Client) {
	t.Helper()
	if err := i.save(t.Context(), to); err != nil {
		t.Fatal(err)
	}
}

func mustLoad(t *testing.T, from client.Client, runtimeID string) *inventory {
	t.Helper()
	found, err := load(t.Context(), from, Runtime(runtimeID))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func secrets(t *testing.T, of client.Client) []corev1.Secret {
	t.Helper()
	list := &corev1.SecretList{}
	if err := of.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func some(count int) []ref {
	refs := make([]ref, 0, count)
	for range count {
		refs = append(refs, ref{Version: "v1", Kind: "ConfigMap", Namespace: "n", Name: uuid.NewString()})
	}
	return refs
}

func TestInventoryIsReadAsItWasStored(t *testing.T) {
	for _, count := range []int{0, 1, 100_000, 3, 60_000} {
		t.Run(strconv.Itoa(count), func(t *testing.T) {
			cluster := newCluster("here")
			before := mustLoad(t, cluster, "r")
			before.Entries = []*entry{{Name: "a", Objects: some(count), Former: some(1), Applied: "d", Ready: true}}
			before.mustSave(t, cluster)
			after := mustLoad(t, cluster, "r")
			if diff := cmp.Diff(before, after, cmpopts.IgnoreUnexported(inventory{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, secret := range secrets(t, cluster) {
				if len(secret.Data[keyContent]) > 1<<20 {
					t.Errorf("Secret %s has %d bytes", secret.Name, len(secret.Data[keyContent]))
				}
			}
			if parts := len(secrets(t, cluster)); (count >= 60_000) != (parts > 1) {
				t.Errorf("the inventory has %d Secrets", parts)
			}
			after.Entries = nil
			after.mustSave(t, cluster)
			if parts := len(secrets(t, cluster)); parts != 1 {
				t.Errorf("%d Secrets remain, although one is enough", parts)
			}
			if err := after.drop(t.Context(), cluster); err != nil {
				t.Fatal(err)
			}
			if left := secrets(t, cluster); len(left) != 0 {
				t.Errorf("%d Secrets remain", len(left))
			}
		})
	}
}

func TestForeignInventory(t *testing.T) {
	objects := some(2)
	for name, tc := range map[string]struct {
		reason  string
		cluster types.UID
		runtime string
		want    []*entry
	}{
		"the same":        {"the progress is used", "here", "r", []*entry{{Name: "a", Objects: objects, Applied: "d", Ready: true}}},
		"another cluster": {"the objects of a restored cluster must be applied again", "there", "r", []*entry{{Name: "a", Objects: objects}}},
		"another runtime": {"the inventory of another runtime is ignored", "here", "other", nil},
	} {
		t.Run(name, func(t *testing.T) {
			first := newCluster("here")
			before := mustLoad(t, first, "r")
			before.Entries = []*entry{{Name: "a", Objects: objects, Applied: "d", Ready: true}}
			before.mustSave(t, first)
			restored := secrets(t, first)[0]
			restored.ResourceVersion = ""
			second := newCluster(tc.cluster, &restored)
			found := mustLoad(t, second, tc.runtime)
			if diff := cmp.Diff(tc.want, found.Entries); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			found.mustSave(t, second)
			if again := mustLoad(t, second, tc.runtime); again.Cluster != tc.cluster || again.Owner != tc.runtime {
				t.Errorf("%s: the inventory is stored for cluster %s and runtime %s", tc.reason, again.Cluster, again.Owner)
			}
		})
	}
}

func TestConcurrentSavesConflict(t *testing.T) {
	cluster := newCluster("here")
	first, second := mustLoad(t, cluster, "r"), mustLoad(t, cluster, "r")
	first.mustSave(t, cluster)
	if err := second.save(t.Context(), cluster); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second creation: %v", err)
	}
	third := mustLoad(t, cluster, "r")
	first.entry("a")
	first.mustSave(t, cluster)
	if err := third.save(t.Context(), cluster); !apierrors.IsConflict(err) {
		t.Errorf("a stale save: %v", err)
	}
}

// TestConcurrentDrop verifies that an inventory that has changed since it was read is not removed.
func TestConcurrentDrop(t *testing.T) {
	cluster := newCluster("cluster")
	mustLoad(t, cluster, "runtime").mustSave(t, cluster)

	late := mustLoad(t, cluster, "runtime")
	mustLoad(t, cluster, "runtime").mustSave(t, cluster)

	if err := late.drop(t.Context(), cluster); !apierrors.IsConflict(err) || len(secrets(t, cluster)) != 1 {
		t.Errorf("the inventory of somebody else is removed: %v", err)
	}

	if err := mustLoad(t, cluster, "runtime").drop(t.Context(), cluster); err != nil || len(secrets(t, cluster)) != 0 {
		t.Errorf("the inventory is not removed: %v", err)
	}
}

// packed compresses a text in the same way as an inventory.
func packed(t *testing.T, text string) []byte {
	t.Helper()
	buffer := &bytes.Buffer{}
	writer := gzip.NewWriter(buffer)
	if _, err := writer.Write([]byte(text)); err != nil || writer.Close() != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// TestInvalidInventory reads malformed inventories, which the owner of a cluster could write. The error must name the Secret and
// say how to repair it.
func TestInvalidInventory(t *testing.T) {
	const many = 2 << 20
	for name, tc := range map[string]struct {
		reason        string
		content, rest string
	}{
		"no content":     {"the Secret was emptied", "", ""},
		"a part is lost": {"an incomplete inventory is invalid", "nothing", "lost"},
		"highly compressible": {
			"its decompression would need a hundred times its size in memory, which all operations share",
			string(packed(t, `{"entries":[{"objects":[`+strings.Repeat("{},", many)+`{}]}]}`)), "",
		},
		"a long text":  {"a long text needs much memory", string(packed(t, `{"runtime":"`+strings.Repeat("r", 12*many)+`"}`)), ""},
		"many parts":   {"each part costs a call", string(packed(t, `{"runtime":"r"}`)), strings.Repeat("part ", 100)},
		"not an array": {"the JSON has another structure", string(packed(t, `{"entries":{}}`)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			head := newSecret(Inventory, map[string][]byte{keyContent: []byte(tc.content), keyRest: []byte(tc.rest)})
			_, err := load(t.Context(), newCluster("here", head, newSecret("part", nil)), Runtime("r"))
			want := "the Secret kube-system/environment-broker-installation does not contain a valid inventory: delete it"
			if !failure.Is(err, failure.Permanent) || !strings.HasPrefix(failure.Of(err).Text, want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, want)
			}
		})
	}
}

func TestInventoryTooLargeToRead(t *testing.T) {
	cluster := newCluster("here")
	tooMuch := mustLoad(t, cluster, "r")
	tooMuch.Entries = []*entry{{Name: "a", Objects: some(300_000)}}
	if err := tooMuch.save(t.Context(), cluster); !failure.Is(err, failure.Permanent) {
		t.Errorf("stored: %v", err)
	}
	if left := secrets(t, cluster); len(left) != 0 {
		t.Errorf("%d Secrets are stored", len(left))
	}
}
