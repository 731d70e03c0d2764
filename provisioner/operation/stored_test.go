package operation_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// TestStoredData checks that data stored by an earlier version of the Provisioner (commit ede58cf) can be decoded, and that
// encoding it again yields the same JSON.
func TestStoredData(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile("testdata/stored.json")
	if err != nil {
		t.Fatal(err)
	}

	var data operation.Data
	if err := json.Unmarshal(text, &data); err != nil {
		t.Fatal(err)
	}

	order, err := data.Order()
	if err != nil {
		t.Fatal(err)
	}

	if data.FormerKyma.Version != "2.19.3" || order.KymaConfig.Version != "2.20.0" || !data.Registered || !data.Asleep {
		t.Errorf("got %+v", data)
	}

	again, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(strings.TrimSpace(string(text)), string(again)); diff != "" {
		t.Errorf("decoding and encoding must not change stored data: -want +got:\n%s", diff)
	}
}
