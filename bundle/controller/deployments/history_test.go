package deployments

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

func TestRecord(t *testing.T) {
	t.Parallel()

	config := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	numbers := func(history []v1alpha1.Version) (found []int64) {
		for _, each := range history {
			found = append(found, each.Number)
		}

		return found
	}

	var history []v1alpha1.Version

	for _, step := range []struct {
		reason  string
		version v1alpha1.Version
		want    []int64
	}{
		{"the first version", v1alpha1.Version{Bundle: "a"}, []int64{1}},
		{"a repair is no version", v1alpha1.Version{Bundle: "a"}, []int64{1}},
		{"another config is one", v1alpha1.Version{Bundle: "a", Config: config(`{"a":1}`)}, []int64{2, 1}},
		{"a repair with a config is none", v1alpha1.Version{Bundle: "a", Config: config(`{"a":1}`)}, []int64{2, 1}},
		{"a rollback is one", v1alpha1.Version{Bundle: "a"}, []int64{3, 2, 1}},
		{"a Bundle with a known digest is one", v1alpha1.Version{Bundle: "b", Digest: "sha256:1"}, []int64{4, 3, 2, 1}},
		{"a repair of it is none", v1alpha1.Version{Bundle: "b", Digest: "sha256:1"}, []int64{4, 3, 2, 1}},
		{"other content of the same Bundle is one", v1alpha1.Version{Bundle: "b", Digest: "sha256:2"}, []int64{5, 4, 3, 2, 1}},
		{"large versions drop old ones", v1alpha1.Version{Bundle: "c", Config: config(`"` + strings.Repeat("a", maxHistory-200) + `"`)}, []int64{6}},
	} {
		history = record(history, step.version)
		if got := numbers(history); !slices.Equal(got, step.want) {
			t.Errorf("%s: got %v, want %v", step.reason, got, step.want)
		}
	}

	history = nil
	for i := range 12 {
		history = record(history, v1alpha1.Version{Bundle: strconv.Itoa(i)})
	}

	if got := numbers(history); len(got) != maxVersions || got[0] != 12 {
		t.Errorf("got the versions %v", got)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()

	bundle := &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{
			"mine": "1", v1alpha1.LabelOwnerKind: "x", v1alpha1.LabelOwnerName: "x", v1alpha1.LabelTemplateHash: "x",
		}},
		Spec: v1alpha1.BundleSpec{ProvisionerClassName: "class", Source: v1alpha1.BundleSource{
			Type: v1alpha1.SourceTypeImage, Image: &v1alpha1.ImageSource{Ref: "registry.example.com/a:v1"},
		}},
		Status: v1alpha1.BundleStatus{Digest: "sha256:1", ResolvedSource: &v1alpha1.BundleSource{
			Type: v1alpha1.SourceTypeImage, Image: &v1alpha1.ImageSource{Ref: "registry.example.com/a@sha256:2"},
		}},
	}

	got := version(bundle, nil, time.Now())
	if got.Template.Spec.Source.Image.Ref != "registry.example.com/a@sha256:2" || got.Template.Spec.ProvisionerClassName != "class" {
		t.Errorf("the template is not pinned: %+v", got.Template.Spec)
	}

	if labels := got.Template.Metadata.Labels; len(labels) != 1 || labels["mine"] != "1" || len(bundle.Labels) != 4 {
		t.Errorf("got the labels %v", labels)
	}
}
