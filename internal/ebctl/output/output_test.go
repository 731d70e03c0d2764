package output_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

func TestPrint(t *testing.T) {
	t.Parallel()

	value := map[string]any{"name": "skr", "plans": []string{"aws"}}

	cases := map[string]struct {
		reason string
		format output.Format
		text   output.Text
		want   string
	}{
		"Rows": {
			reason: "columns are as wide as their widest cell, and no line ends with spaces",
			format: output.Table,
			text:   output.Rows{Head: []string{"NAME", "PLAN"}, Rows: [][]string{{"a-long-name", "aws"}, {"b", ""}}},
			want:   "NAME         PLAN\na-long-name  aws\nb\n",
		},
		"NoRows": {
			reason: "an empty table has no header",
			format: output.Table,
			text:   output.Rows{Head: []string{"NAME"}, None: "no instances"},
			want:   "no instances\n",
		},
		"HostileCell": {
			reason: "text of the broker cannot break the line or control the terminal",
			format: output.Table,
			text:   output.Rows{Head: []string{"TEXT", "NEXT"}, Rows: [][]string{{"one\ntwo\t\x1b[31mred", "x"}}},
			want:   "TEXT             NEXT\none two [31mred  x\n",
		},
		"Fields": {
			reason: "a field without a value is omitted",
			format: output.Table,
			text:   output.Fields{{Name: "Name", Value: "skr"}, {Name: "Shoot"}, {Name: "Region", Value: "eu-central-1"}},
			want:   "Name    skr\nRegion  eu-central-1\n",
		},
		"Plain": {
			reason: "a plain text ends with exactly one line break",
			format: output.Table,
			text:   output.Plain("apiVersion: v1\n"),
			want:   "apiVersion: v1\n",
		},
		"Wide": {
			reason: "only a wide table has all columns and long cells",
			format: output.Wide,
			text:   output.Rows{Head: []string{"A", "B"}, Rows: [][]string{{"12345", "x"}}, WideColumns: 1, Cut: 3},
			want:   "A      B\n12345  x\n",
		},
		"NotWide": {
			reason: "a table has cells of limited length",
			format: output.Table,
			text:   output.Rows{Head: []string{"A", "B"}, Rows: [][]string{{"12345", "x"}, {"äöü", ""}}, WideColumns: 1, Cut: 3},
			want:   "A\n12…\näöü\n",
		},
		"NoHead": {
			reason: "a table without its header has neither header nor sentence",
			format: output.Table,
			text:   output.Rows{Head: []string{"A"}, None: "none", NoHead: true},
		},
		"Name": {
			reason: "an ID per line",
			format: output.Name,
			text:   output.Rows{IDs: []string{"1", "2"}},
			want:   "1\n2\n",
		},
		"NameOfOne": {
			reason: "the ID of a single result",
			format: output.Name,
			text:   output.WithID{ID: "1"},
			want:   "1\n",
		},
		"JSONPath": {
			reason: "the selected fields, without a line break; braces may be left out",
			format: output.JSONPath + "plans[0]",
			want:   "aws",
		},
		"Missing": {
			reason: "a missing field is empty",
			format: output.JSONPath + "{.nothing}",
		},
		"GoTemplate": {
			reason: "the template has the fields by their JSON names",
			format: output.GoTemplate + "{{.name}} {{len .plans}}\n",
			want:   "skr 1\n",
		},
		"JSON": {
			reason: "JSON is indented and ends its line",
			format: output.JSON,
			want:   "{\n  \"name\": \"skr\",\n  \"plans\": [\n    \"aws\"\n  ]\n}\n",
		},
		"YAML": {
			reason: "YAML has the same names as JSON",
			format: output.YAML,
			want:   "name: skr\nplans:\n- aws\n",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var got strings.Builder
			if err := tc.format.Print(&got, value, tc.text); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}

			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

var errFull = errors.New("no space left on device")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// TestColumnsOfFields prints fields with several lines as one row whose columns all have names.
func TestColumnsOfFields(t *testing.T) {
	t.Parallel()

	const head = "Name,Operation,Delete first,State\n"

	for name, tc := range map[string]struct {
		fields output.Fields
		want   string
	}{
		"one line each": {output.Fields{{"Name", "a"}, {"Operation", "update"}, {"Delete first", ""}, {"State", "ok"}}, head + "a,update,,ok\n"},
		"several lines": {
			output.Fields{{"Name", "a"}, {"Operation", "update"}, {"", "Updated"}, {"Delete first", "b"}, {"Delete first", "c"}, {"State", "ok"}},
			head + "a,\"update\nUpdated\",\"b\nc\",ok\n",
		},
		"empty lines": {
			output.Fields{{"Name", "a"}, {"Operation", ""}, {"", "Updated"}, {"", ""}, {"Delete first", ""}, {"State", "ok"}},
			head + "a,Updated,,ok\n",
		},
	} {
		var printed strings.Builder
		if err := output.CSV.Print(&printed, nil, tc.fields); err != nil || printed.String() != tc.want {
			t.Errorf("%s: got %q, %v, want %q", name, printed.String(), err, tc.want)
		}
	}
}

func TestPrintReturnsWriteErrors(t *testing.T) {
	t.Parallel()

	for _, format := range []output.Format{output.Table, output.JSON, output.YAML} {
		if err := format.Print(fullDisk{}, "value", output.Plain("value")); !errors.Is(err, errFull) {
			t.Errorf("%s: got error %v, want %v", format, err, errFull)
		}
	}
}

func TestSet(t *testing.T) {
	t.Parallel()

	for _, name := range output.Formats() {
		var format output.Format

		if strings.HasSuffix(name, "=") {
			if err := format.Set(name); err == nil {
				t.Errorf("Set accepted %s without an expression", name)
			}

			name += "{.a}"
		}

		if err := format.Set(name); err != nil || format.String() != name {
			t.Errorf("Set(%q): got %q, %v", name, format, err)
		}
	}

	for _, name := range []string{"jsonpath={.a", "go-template={{.a"} {
		var format output.Format
		if err := format.Set(name); err == nil {
			t.Errorf("Set accepted an invalid expression of %s", name)
		}
	}

	if err := output.Name.Print(io.Discard, nil, output.Plain("a")); !errors.Is(err, output.ErrNoNames) {
		t.Errorf("a result without IDs must be an error, got %v", err)
	}

	format := output.JSON

	err := format.Set("xml")
	if err == nil || err.Error() != `output format "xml" is not one of table, wide, name, json, yaml, csv, jsonpath=, go-template=` || format != output.JSON {
		t.Errorf("unknown format: got %v and format %s", err, format)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()

	cases := map[time.Duration]string{
		-3 * time.Second:                      "0s",
		0:                                     "0s",
		1499 * time.Millisecond:               "1s",
		59*time.Second + 600*time.Millisecond: "1m00s",
		3*time.Minute + 5*time.Second:         "3m05s",
		2*time.Hour + 10*time.Minute:          "2h10m",
		102 * time.Hour:                       "4d6h",
	}

	for duration, want := range cases {
		if got := output.Duration(duration); got != want {
			t.Errorf("Duration(%v) = %q, want %q", duration, got, want)
		}
	}
}

func TestTime(t *testing.T) {
	t.Parallel()

	moment := time.Date(2026, 5, 1, 12, 0, 3, 4, time.FixedZone("east", 2*60*60))

	if got, want := output.Time(moment), "2026-05-01 10:00:03Z"; got != want {
		t.Errorf("a time must be shown in UTC: got %q, want %q", got, want)
	}

	if got := output.Time(time.Time{}); got != "" {
		t.Errorf("the zero time must be empty, got %q", got)
	}
}
