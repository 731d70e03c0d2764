package environment_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// TestStoredData checks that no field is lost or renamed when a row of an earlier release, without a version, is read and written
// again, and that a row with a later version is rejected.
func TestStoredData(t *testing.T) {
	row, err := os.ReadFile("testdata/operation_data_v1.json")
	if err != nil {
		t.Fatal(err)
	}

	var data environment.Data
	if err := json.Unmarshal(row, &data); err != nil {
		t.Fatal(err)
	}

	written, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}

	var want, got map[string]any
	if err := json.Unmarshal(row, &want); err != nil {
		t.Fatal(err)
	}

	if err := json.Unmarshal(written, &got); err != nil {
		t.Fatal(err)
	}

	if version := got["version"]; version != 1. {
		t.Errorf("the row was written with version %v, want 1", version)
	}

	delete(got, "version")

	if !reflect.DeepEqual(want, got) {
		t.Errorf("fields were lost or renamed:\nrow     %s\nwritten %s", row, written)
	}

	if err := json.Unmarshal([]byte(`{"version": 2}`), &data); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("a row with a later version must be rejected, got %v", err)
	}
}
