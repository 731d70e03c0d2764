package fakehub

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

func TestAdmit(t *testing.T) {
	t.Parallel()

	valid := func() *v1alpha1.Bundle {
		return &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: v1alpha1.BundleSpec{
			ProvisionerClassName: "core-rukpak-io-plain",
			Source:               v1alpha1.BundleSource{Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{}},
		}}
	}

	for name, c := range map[string]struct {
		reason string
		change func(*v1alpha1.Bundle)
		update bool
		want   string
	}{
		"valid":         {"nothing is wrong", func(*v1alpha1.Bundle) {}, false, ""},
		"unchanged":     {"an update of metadata is permitted", func(b *v1alpha1.Bundle) { b.Labels = map[string]string{"a": "b"} }, true, ""},
		"long name":     {"the name becomes a label", func(b *v1alpha1.Bundle) { b.Name = strings.Repeat("a", 64) }, false, "at most 63 characters"},
		"no class":      {"the class selects the controller", func(b *v1alpha1.Bundle) { b.Spec.ProvisionerClassName = "" }, false, "provisionerClassName"},
		"wrong field":   {"the field must fit the type", func(b *v1alpha1.Bundle) { b.Spec.Source.Type = v1alpha1.SourceTypeImage }, false, "source.image must be set"},
		"unknown type":  {"no source has the type", func(b *v1alpha1.Bundle) { b.Spec.Source.Type = "ftp" }, false, "supported values"},
		"changed spec":  {"the content of a Bundle is fixed", func(b *v1alpha1.Bundle) { b.Spec.ProvisionerClassName = "other" }, true, "cannot change"},
		"second source": {"a Bundle has one source", func(b *v1alpha1.Bundle) { b.Spec.Source.Git = &v1alpha1.GitSource{} }, false, "source.git must be set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			bundle := valid()
			c.change(bundle)

			var err error
			if c.update {
				err = admit(t.Context(), nil, valid(), bundle)
			} else {
				err = admit(t.Context(), nil, nil, bundle)
			}

			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want an error with %q", c.reason, err, c.want)
			}
		})
	}
}

func TestAllowsPath(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		reason, role, verb, path string
		want                     bool
	}{
		{"readers read content", "bundle-reader", "get", "/bundles/one.tgz", true},
		{"readers upload nothing", "bundle-reader", "put", "/uploads/one.tgz", false},
		{"uploaders upload", "bundle-uploader", "put", "/uploads/one.tgz", true},
		{"other roles have no paths", "view", "get", "/bundles/one.tgz", false},
	} {
		if got := allowsPath(c.role, c.verb, c.path); got != c.want {
			t.Errorf("%s: got %v", c.reason, got)
		}
	}
}
