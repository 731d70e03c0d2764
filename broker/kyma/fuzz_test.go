package kyma

import (
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// FuzzDecode checks that every response of a control plane is either decoded or an error that does not quote it.
func FuzzDecode(f *testing.F) {
	f.Add(`{"items": [{"metadata": {"name": "a"}, "data": {"key": "dmFsdWU="}}]}`)
	f.Add(`{"items": null`)
	f.Add(`<html>maintenance</html>`)

	f.Fuzz(func(t *testing.T, text string) {
		var list corev1.SecretList

		found, err := decode(&http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text))}, &list)
		if found == (err != nil) || err != nil && failure.Of(err).Kind == failure.Internal {
			t.Errorf("found %t, %v", found, err)
		}
	})
}

// FuzzParseComponents checks that additional components always have a name and a namespace.
func FuzzParseComponents(f *testing.F) {
	f.Add("additional-components: [{name: dns, namespace: kyma-system}]\nkyma-template: |\n  kind: Kyma")
	f.Add("additional-components: [{name: dns, source: {url: https://example.com}}]")
	f.Add("- 1")

	f.Fuzz(func(t *testing.T, text string) {
		components, err := parseComponents(text, true)
		if err != nil && len(components) > 0 {
			t.Error("components in spite of an error")
		}

		for _, component := range components {
			if component.Name == "" || component.Namespace == "" {
				t.Errorf("%+v is incomplete", component)
			}
		}
	})
}
