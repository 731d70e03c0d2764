package ebctl_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/ebctl"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// TestExportStreams exports 10,000 instances in pages of 100. Before ebctl requests a page, it must have written nearly all entries of
// the earlier pages, because it may not hold more than two pages.
func TestExportStreams(t *testing.T) {
	t.Parallel()

	const pages, size = 100, 100

	for format, count := range map[string]func(out string) int{
		"csv": func(out string) int {
			rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}

			return len(rows) - 1
		},
		"json": func(out string) int { return listed(t, []byte(out)) },
		"yaml": func(out string) int {
			encoded, err := yaml.YAMLToJSON([]byte(out))
			if err != nil {
				t.Fatal(err)
			}

			return listed(t, encoded)
		},
		"name": func(out string) int { return strings.Count(out, "\n") },
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()

			var out, problems strings.Builder

			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				page, _ := strconv.Atoi(r.URL.Query().Get("cursor"))

				if page > 1 && !strings.Contains(out.String(), fmt.Sprintf("id-%d-%d", page-2, size-1)) {
					t.Errorf("page %d is requested, but page %d is not written", page, page-2)
				}

				list := operatorapi.RuntimeList{}
				list.Count = size

				for n := range size {
					list.Data = append(list.Data, operatorapi.Runtime{InstanceID: fmt.Sprintf("id-%d-%d", page, n), Name: "=1+1"})
				}

				if page < pages-1 {
					list.Cursor = strconv.Itoa(page + 1)
				}

				answer(w, http.StatusOK, list)
			}))
			defer server.Close()

			code := ebctl.App{
				Out: &out, Err: &problems, Environment: func(string) string { return "" },
				Terminal: func() (follow.Size, bool) { return follow.Size{}, false },
			}.Run(t.Context(), []string{"instance", "list", "--all-pages", "-o", format, "--address", server.URL})

			if got := count(out.String()); code != ebctl.ExitOK || got != pages*size {
				t.Errorf("exit code %d with %d entries, want %d: %s", code, got, pages*size, problems.String())
			}

			if format == "csv" && strings.Contains(out.String(), ",=1+1") {
				t.Error("a name is a formula in spreadsheets")
			}
		})
	}
}

// listed returns the number of entries of a list, which must be equal to its count.
func listed(t *testing.T, encoded []byte) int {
	t.Helper()

	var list operatorapi.RuntimeList
	if err := json.Unmarshal(encoded, &list); err != nil {
		t.Fatal(err)
	}

	if list.Count != len(list.Data) {
		t.Errorf("the count is %d, but the list has %d entries", list.Count, len(list.Data))
	}

	return len(list.Data)
}
