package ebctl

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// FuzzConfiguration decodes arbitrary configuration files. An accepted file can be written and read again, as `ebctl login` does.
func FuzzConfiguration(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "address: http://127.0.0.1:8080\nusername: u\npassword: p\n", "context: a\ncontexts: {a: {token: t}, b: {provisioner: {address: x}}}",
		"contexts: {a: null}", "unknown: 1", "a: &x [*x]", "- a", "password: [1]", "context: a\ncontext: b", "\x00", "password: \"\\u0000\"",
		"a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b,*b]",
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, content []byte) {
		read, err := parseConfiguration(content)
		if err != nil {
			return
		}

		for name := range read.Contexts {
			if _, err := read.settings(name, true); err != nil && strings.Contains(err.Error(), "unknown") {
				t.Errorf("the context %q is unknown: %v", name, err)
			}
		}

		written, err := yaml.Marshal(read)
		if err != nil {
			t.Fatalf("%q cannot be written: %v", content, err)
		}

		again, err := parseConfiguration(written)
		if err != nil {
			t.Fatalf("%q is written as %q, which cannot be read: %v", content, written, err)
		}

		if second, err := yaml.Marshal(again); err != nil || !cmp.Equal(string(written), string(second)) {
			t.Errorf("%q changes when it is written again: %v %s", content, err, cmp.Diff(string(written), string(second)))
		}
	})
}
