package spec_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// FuzzDecode decodes arbitrary stored orders. A decoded order can be stored and decoded again without a change.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"version":1}`, `{"version":2}`, `{"version":1e999}`, `{"metadata":{"name":"n","labels":{"a":[1,{"b":null}],"c":1e308}}}`,
		`{"columns":{"tenant":"t"},"clusterConfig":{"gardenerConfig":{"name":"c","provider":"aws","providerSpecificConfig":{"awsConfig":{"awsZones":[{"name":"z"}]}}}}}`,
		`{"clusterConfig":{"administrators":["a",null]},"kymaConfig":{"version":"1","components":[null,{"component":"c","configuration":[null]}]}}`,
		`{"clusterConfig":null,"clusterConfig":{}}`, `{"metadata":{"labels":{"a":"\ud800"}}}`,
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		order, err := spec.Decode(text)
		if err != nil {
			return
		}

		stored, err := spec.Encode(order)
		if err != nil {
			t.Fatalf("%q cannot be stored again: %v", text, err)
		}

		again, err := spec.Decode(stored)
		if err != nil {
			t.Fatalf("%q is stored as %q, which cannot be decoded: %v", text, stored, err)
		}

		if second, err := spec.Encode(again); err != nil || string(second) != string(stored) {
			t.Errorf("%q changes when it is stored again:\n%s\n%s, %v", text, stored, second, err)
		}
	})
}
