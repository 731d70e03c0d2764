package tenancy_test

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/internal/labels/tenancy"
)

func TestLabel(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason, id, want string
	}{
		"Empty":   {"An empty ID stays empty.", "", ""},
		"GUID":    {"A valid label is unchanged, so stored tenants stay valid.", "3e64ebae-38b5-46a0-b1ed-9ccee153a0ae", "3e64ebae-38b5-46a0-b1ed-9ccee153a0ae"},
		"Longest": {"63 characters are valid.", strings.Repeat("a", 63), strings.Repeat("a", 63)},
		"Hyphen": {
			"The open-source Service Manager sends a hyphen.", "-", "sha256-3973e022e93220f9212c18d0d0c543ae",
		},
		"Long":  {"A long ID is shortened.", strings.Repeat("a", 64), "sha256-ffe054fe7ae0cb6dc65c3af9b61d5209"},
		"Label": {"The label of a label is the label.", "sha256-3973e022e93220f9212c18d0d0c543ae", "sha256-3973e022e93220f9212c18d0d0c543ae"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := tenancy.Label(tc.id)
			if got != tc.want || len(validation.IsValidLabelValue(got)) > 0 {
				t.Errorf("%s got %q, want %q, a valid label", tc.reason, got, tc.want)
			}

			if original := tenancy.Original(tc.id); (original != "") != (got != tc.id) {
				t.Errorf("the original of the label %q is %q", got, original)
			}
		})
	}
}

func TestRead(t *testing.T) {
	t.Parallel()

	odd := " a b/ü%\x7f"

	cases := map[string]struct {
		reason, id, original string
		wantLabel, want      string
	}{
		"Valid":      {"A valid ID needs no original.", "acme", "", "acme", ""},
		"Missing":    {"An absent header means an empty label.", "", "", "", ""},
		"Raw":        {"Other brokers send the ID itself.", "-", "", tenancy.Label("-"), "-"},
		"Label":      {"Our broker sends the label and the original.", tenancy.Label(odd), tenancy.EncodeOriginal(odd), tenancy.Label(odd), odd},
		"Lone label": {"The Kyma Environment Broker never sends an original.", tenancy.Label("-"), "", tenancy.Label("-"), ""},
		"Foreign":    {"An original of another tenant is ignored.", "acme", tenancy.EncodeOriginal("-"), "acme", ""},
		"Malformed":  {"An original that cannot be decoded is ignored.", "acme", "%zz", "acme", ""},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			headers := http.Header{}
			headers.Set("Tenant", tc.id)
			headers.Set(tenancy.HeaderOriginalTenant, tc.original)

			label, original := tenancy.Read(headers, "tenant", tenancy.HeaderOriginalTenant)
			if label != tc.wantLabel || original != tc.want {
				t.Errorf("%s got %q and %q, want %q and %q", tc.reason, label, original, tc.wantLabel, tc.want)
			}
		})
	}
}
