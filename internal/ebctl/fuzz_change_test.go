package ebctl

import (
	"errors"
	"testing"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// FuzzChange checks that a manifest is a usage error or changes the template, and that a Bundle changes nothing else.
func FuzzChange(f *testing.F) {
	f.Add("apiVersion: core.rukpak.io/v1alpha1\nkind: Bundle\nspec: {provisionerClassName: a, source: {type: image, image: {ref: b}}}\n")
	f.Add("apiVersion: core.rukpak.io/v1alpha1\nkind: BundleDeployment\nspec: {provisionerClassName: a, config: {values: \"a: b\"}, template: {spec: {}}}\n")
	f.Add("apiVersion: v1\nkind: Secret\n")
	f.Add("")

	f.Fuzz(func(t *testing.T, text string) {
		change, err := parseChange([]byte(text))
		if err != nil {
			if _, is := errors.AsType[*usageError](err); !is {
				t.Errorf("the error is no usage error: %v", err)
			}

			return
		}

		spec := v1alpha1.BundleDeploymentSpec{ProvisionerClassName: "present", InstallNamespace: "present"}
		spec.Template.Spec.ProvisionerClassName = "present"
		change(&spec)

		if spec.InstallNamespace == "present" && spec.ProvisionerClassName != "present" {
			t.Errorf("the manifest of a Bundle changes %+v", spec)
		}
	})
}
