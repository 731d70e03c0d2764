package brokerclient_test

import (
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func allRuntimes(t *testing.T, client *brokerclient.Client) iter.Seq2[operatorapi.Runtime, error] {
	t.Helper()

	return brokerclient.All(func(cursor string) ([]operatorapi.Runtime, string, error) {
		list, err := client.ListRuntimes(t.Context(), operatorapi.ListRuntimesParams{Plan: "aws", Cursor: cursor})

		return list.Data, list.Cursor, err
	})
}

func TestAll(t *testing.T) {
	t.Parallel()

	pages := map[string]string{
		"":  `{"data": [{"instanceID": "a"}, {"instanceID": "b"}], "cursor": "2"}`,
		"2": `{"data": [{"instanceID": "c"}], "cursor": "3"}`,
	}

	cases := map[string]struct {
		reason string
		last   string
		want   []string
		err    string
	}{
		"End": {
			reason: "the sequence ends after a page without a cursor",
			last:   `{"data": [{"instanceID": "d"}]}`, want: []string{"a", "b", "c", "d"},
		},
		"Circle": {
			reason: "a repeated cursor ends the list",
			last:   `{"cursor": "3"}`, want: []string{"a", "b", "c"}, err: "the same cursor twice",
		},
		"NoAnswer": {
			reason: "an error ends the list",
			last:   `rubbish`, want: []string{"a", "b", "c"}, err: "is not JSON",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				page, found := pages[r.URL.Query().Get("cursor")]
				if !found {
					page = tc.last
				}

				respond(http.StatusOK, page)(w, r)
			})

			var (
				got    []string
				failed error
			)

			for runtime, err := range allRuntimes(t, client) {
				if err != nil {
					failed = err

					continue
				}

				got = append(got, runtime.InstanceID)
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}

			if (failed == nil) != (tc.err == "") || failed != nil && !strings.Contains(failed.Error(), tc.err) {
				t.Errorf("%s: got error %v, want %q", tc.reason, failed, tc.err)
			}
		})
	}

	t.Run("Enough", func(t *testing.T) {
		t.Parallel()

		client := serve(t, respond(http.StatusOK, pages[""]))

		var first operatorapi.Runtime
		for runtime := range allRuntimes(t, client) {
			first = runtime

			break
		}

		if first.InstanceID != "a" {
			t.Errorf("got the first entry %+v, want the one with ID a", first)
		}
	})
}
