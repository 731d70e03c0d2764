package storage_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/storage"
)

// labeledPair is an argument with an embedded struct and an additional field.
type labeledPair struct {
	pair

	Label string `db:"the_label"`
}

func TestNamed(t *testing.T) {
	named, err := storage.NewNamed[labeledPair](`UPDATE pairs SET color = :the_label, size = :size WHERE id = :id AND color <> :the_label`)
	if err != nil {
		t.Fatal(err)
	}

	for _, label := range []string{"red", "blue :size"} {
		want := storage.Statement{
			Text: `UPDATE pairs SET color = ?, size = ? WHERE id = ? AND color <> ?`,
			Args: []any{label, int64(7), "a", label},
		}
		if diff := cmp.Diff(want, named.Statement(labeledPair{pair: pair{ID: "a", Size: 7}, Label: label})); diff != "" {
			t.Errorf("arguments in order of use (-want +got):\n%s", diff)
		}
	}
}

func TestNamedWithoutValue(t *testing.T) {
	if _, err := storage.NewNamed[pair](`UPDATE pairs SET size = :weight`); err == nil || !strings.Contains(err.Error(), ":weight") {
		t.Errorf("a name without a value returns %v, want an error with the name", err)
	}
}
