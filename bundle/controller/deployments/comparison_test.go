package deployments

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/environment-broker/environment-broker/internal/clients/applier"
)

// configMapOf returns a ConfigMap with lines.
func configMapOf(name string, lines int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default"},
		"data": map[string]any{"text": strings.Repeat("some line\n", lines)},
	}}
}

// TestBoundsOfComparisons checks that the status stays small even if the objects are large.
func TestBoundsOfComparisons(t *testing.T) {
	var differences []applier.Difference

	for index := range maxDifferences + 5 {
		name, lines := fmt.Sprint("object-", index), 1
		switch index {
		case 0:
			lines = 2 * maxDifference / len("some line\n")
		case 1:
			lines = maxLines + 1
		}

		differences = append(differences, applier.Difference{Action: applier.ActionCreate, Object: name, After: configMapOf(name, lines)})
	}

	found := comparison("b", differences, nil)
	if len(found.Differences) != maxDifferences || found.Omitted != 5 {
		t.Fatalf("%d differences, %d omitted", len(found.Differences), found.Omitted)
	}

	size := 0
	for _, difference := range found.Differences {
		size += len(difference.Diff)
	}

	for index, want := range map[int]string{0: "omitted: more lines", 1: "omitted: the object has 0 lines", 2: "+++ object-2"} {
		if got := found.Differences[index].Diff; !strings.Contains(got, want) || len(got) > maxDifference+100 {
			t.Errorf("object %d: %d bytes without %q", index, len(got), want)
		}
	}

	if size > maxComparison+maxDifference+maxDifferences*50 {
		t.Errorf("the diffs have %d bytes", size)
	}

	for index := range differences {
		differences[index].After = configMapOf(differences[index].Object, maxDifference/20)
	}

	found = comparison("b", differences, nil)
	if got := found.Differences[maxDifferences-1].Diff; got != "omitted: the comparison is too large\n" {
		t.Errorf("got %q", got)
	}
}

// TestMaskedComparison checks that no diff contains values of Secrets, even if they have several lines or are in other objects.
func TestMaskedComparison(t *testing.T) {
	const value = "first line of a key\nsecond line of a key\n"

	secretOf := func(encoded string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"key": encoded},
			"metadata": map[string]any{"name": "s", "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": encoded}},
		}}
	}

	other := configMapOf("c", 0)
	other.Object["data"] = map[string]any{"text": "a: " + value, "old": "begin old-value end"}

	found := comparison("b", []applier.Difference{
		{Action: applier.ActionChange, Object: "Secret s", Before: secretOf("b2xkLXZhbHVl"), After: secretOf("bmV3LXZhbHVl")},
		{Action: applier.ActionCreate, Object: "ConfigMap c", After: other},
	}, []string{value, "new-value"})

	text := fmt.Sprint(found.Differences)
	for _, secret := range []string{"line of a key", "old-value", "new-value", "b2xk", "bmV3"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in %s", secret, text)
		}
	}

	if !strings.Contains(text, "key: '*** (before)'") || !strings.Contains(text, "begin *** end") {
		t.Errorf("got %s", text)
	}
}

// TestComparisonOfFinalizers shows a difference in the finalizers, which the installation would change.
func TestComparisonOfFinalizers(t *testing.T) {
	before := configMapOf("one", 1)
	after := before.DeepCopy()
	after.SetFinalizers([]string{"example.com/one"})

	found := comparison("b", []applier.Difference{{Action: applier.ActionChange, Object: "one", Before: before, After: after}}, nil)
	if got := found.Differences[0].Diff; !strings.Contains(got, "+  - example.com/one") {
		t.Errorf("got %q", got)
	}
}
