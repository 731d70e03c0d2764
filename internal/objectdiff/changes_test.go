package objectdiff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/objectdiff"
)

func TestChanges(t *testing.T) {
	t.Parallel()

	type object = map[string]any

	type list = []any

	cases := map[string]struct {
		reason          string
		present, wanted any
		want            []string
	}{
		"Fields": {
			reason:  "Fields of the wanted object replace others; what it lacks stays.",
			present: object{"a": 1, "b": true, "other": "x"}, wanted: object{"a": 2, "b": true, "c": object{"d": nil, "e": "new"}},
			want: []string{"a: 1 becomes 2", `c.e: set to "new"`},
		},
		"Names": {
			reason:  "Items are compared by their names, in any order, and others stay.",
			present: object{"workers": list{object{"name": "a", "max": 3, "zones": list{"x"}}, object{"name": "other"}}},
			wanted:  object{"workers": list{object{"name": "b", "max": 1}, object{"name": "a", "max": 4, "zones": list{"x", "y"}}}},
			want:    []string{"workers[a].max: 3 becomes 4", `workers[a].zones: ["x"] becomes ["x","y"]`, "workers[b].max: set to 1", `workers[b].name: set to "b"`},
		},
		"Opaque": {
			reason:  "An opaque object is replaced as a whole, with its lists.",
			present: object{"config": object{"a": 1, "zones": list{object{"name": "x", "b": 1}, object{"name": "y"}}}},
			wanted:  object{"config": object{"zones": list{object{"name": "x"}}}},
			want:    []string{"config.a: 1 is removed", "config.zones[x].b: 1 is removed", `config.zones[y]: {"name":"y"} is removed`},
		},
		"Annotations": {
			reason:  "Names with dots are in brackets.",
			present: object{}, wanted: object{"annotations": object{"example.com/id": "1"}},
			want: []string{`annotations[example.com/id]: set to "1"`},
		},
		"Numbers": {
			reason:  "Numbers of different Go types can be equal.",
			present: object{"a": int64(3), "b": 12345678901234567}, wanted: object{"a": 3.0, "b": 12345678901234568},
			want: []string{"b: 12345678901234567 becomes 12345678901234568"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			found, err := objectdiff.Changes(tc.present, tc.wanted, func(path string) bool { return path == "config" })
			if err != nil {
				t.Fatal(err)
			}

			var got []string
			for _, each := range found {
				got = append(got, each.String())
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()

	type object = map[string]any

	type list = []any

	present := object{"a": 1, "b": object{"c": "x"}, "pools": list{object{"name": "one", "max": 3}}}
	wanted := object{
		"a": 2, "b": object{"c": "x", "d": object{"e": 1, "f": 2}}, "empty": nil,
		"pools": list{object{"name": "one", "max": 3, "labels": object{"team": "blue"}}, object{"name": "two", "max": 1}},
	}

	got, err := objectdiff.Missing(present, wanted)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"a", "b.d", "pools[one].labels", "pools[two]"}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	if _, err := objectdiff.Missing(present, func() {}); err == nil {
		t.Error("a value without JSON must be an error")
	}
}
