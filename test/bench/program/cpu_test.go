package program

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProcessor(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		line   string
		want   processor
		fails  bool
	}{
		"Server": {
			reason: "what has ended counts too",
			line:   "812 (postgres) S 700 812 812 0 -1 4194560 9 8 7 6 120 30 400 50 20 0 1 0 4549756 3133440 375",
			want:   processor{parent: 700, used: 1500 * time.Millisecond, ended: 4500 * time.Millisecond},
		},
		"Name like the end of a name": {
			reason: "a program may be called anything",
			line:   "812 (a) R 1 (b) S 700 812 812 0 -1 4194560 9 8 7 6 1 0 0 0 20 0",
			want:   processor{parent: 700, used: 10 * time.Millisecond},
		},
		"Cut off":     {reason: "a time that is not told is not nothing", line: "812 (postgres) S 700 812", fails: true},
		"No number":   {reason: "nor is one that cannot be read", line: "812 (postgres) S 700 x 812 0 -1 1 9 8 7 6 1 0 0 0 20 0", fails: true},
		"Nothing yet": {reason: "a process that ends has no line for a moment", line: "", fails: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := parseProcessor(tc.line)
			if (err != nil) != tc.fails {
				t.Fatalf("%s: %v", tc.reason, err)
			}

			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(processor{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
