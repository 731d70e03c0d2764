//go:build garden

package requirements_test

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/bundle/controller/bundles"
)

// TestRequirement01ClassNames checks that the provisioner starts only if the names of its classes are unique DNS labels.
func TestRequirement01ClassNames(t *testing.T) {
	for name := range classes() {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{plain, second}, ""},
		{[]string{strings.Repeat("a", 63)}, ""},
		{[]string{plain, second, plain}, `"core-rukpak-io-plain" is used twice`},
		{[]string{"core.rukpak.io/plain"}, "is not valid"},
		{[]string{"A"}, "is not valid"},
		{[]string{"-a"}, "is not valid"},
		{[]string{""}, "is not valid"},
		{[]string{strings.Repeat("a", 64)}, "is not valid"},
		{nil, "no provisioner class"},
	} {
		var own []bundles.Class
		for _, name := range c.names {
			own = append(own, bundles.Class{Name: name, Format: anything{}})
		}
		_, err := bundles.NewUnpacker(bundles.UnpackerOptions{
			Source: &sources{}, Store: newDisk(), Classes: own, Workers: 1, Registry: prometheus.NewRegistry(), Log: logr.Discard(),
		})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: got %v, want %q", c.names, err, c.want)
		}
	}
}
