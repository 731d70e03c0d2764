package applier

import (
	"bytes"
	"compress/gzip"
	"testing"
)

// FuzzInventory decodes arbitrary inventories from a cluster, whose users can change them.
func FuzzInventory(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", "[]", `{"objects":[null]}`, "x"} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, content []byte) {
		var raw, decoded inventory

		_ = unpack(content, &raw) // usually not gzip

		var packed bytes.Buffer

		zipped := gzip.NewWriter(&packed)
		if _, err := zipped.Write(content); err != nil {
			t.Fatal(err)
		}

		if err := zipped.Close(); err != nil {
			t.Fatal(err)
		}

		if err := unpack(packed.Bytes(), &decoded); err != nil {
			return
		}

		if again, err := pack(&decoded); err != nil || unpack(again, &raw) != nil {
			t.Errorf("%q cannot be stored again: %v", content, err)
		}
	})
}
