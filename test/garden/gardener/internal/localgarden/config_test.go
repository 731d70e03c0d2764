package localgarden_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/localgarden"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason    string
		arguments []string
		want      localgarden.Config
	}{
		"defaults": {
			reason:    "a folder is enough; the deletion takes half as long as the creation",
			arguments: []string{"--dir", "/data", "--bin-dir=/bin"},
			want: localgarden.Config{
				Dir: "/data", Binaries: "/bin", Runtimes: localgarden.RuntimesOwn, Creation: 5 * time.Second, Deletion: 2500 * time.Millisecond,
				Kubeconfig: "/data/kubeconfig", Projects: []string{"local"},
			},
		},
		"everything": {
			reason: "each flag is read",
			arguments: []string{
				"--dir=/data", "--bin-dir=/bin", "--runtimes=shared", "--cluster-creation=1s", "--cluster-deletion=3s",
				"--kubeconfig=/elsewhere", "--project=other", "--project=second",
			},
			want: localgarden.Config{
				Dir: "/data", Binaries: "/bin", Runtimes: localgarden.RuntimesShared, Creation: time.Second, Deletion: 3 * time.Second,
				Kubeconfig: "/elsewhere", Projects: []string{"other", "second"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := localgarden.Parse(test.arguments, &bytes.Buffer{})
			if err != nil {
				t.Fatalf("%s: %v", test.reason, err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason    string
		arguments []string
		want      string
	}{
		"no folder":     {"the folder is required", nil, "--dir is missing"},
		"unknown mode":  {"a typo must not start another mode", []string{"--dir=/data", "--runtimes=none"}, `"none" is not own, shared or simulated`},
		"extra word":    {"an argument without a flag is probably a mistake", []string{"--dir=/data", "shared"}, `unexpected argument "shared"`},
		"unknown flags": {"a typo must be reported", []string{"--dir=/data", "--speed=9"}, "flag provided but not defined"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := localgarden.Parse(test.arguments, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got error %v, want one with %q", test.reason, err, test.want)
			}
		})
	}
}
