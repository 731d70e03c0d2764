package operations_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// TestRemovable identifies operations by their kinds. The suffix of a kind shows its state: ! is not due, ~ has failed, and ? is
// running.
func TestRemovable(t *testing.T) {
	removal := operations.Removal{
		Lasting: []string{"create", "stop"}, Ending: []string{"delete"}, Latest: [][]string{{"delete"}, {"create", "stop", "change", "delete"}},
	}

	for history, test := range map[string]struct {
		reason  string
		subject operations.Subject
		want    string
	}{
		"":                                        {"there is nothing", operations.Gone, ""},
		"create,upgrade,delete":                   {"the object is gone", operations.Gone, "0 1 2"},
		"create,upgrade!,delete":                  {"an operation that is not due keeps the newer ones", operations.Gone, "0"},
		"create,delete?":                          {"the deletion still reads the creation", operations.Gone, ""},
		"create,upgrade,upgrade":                  {"creation and newest operation stay", operations.Present, "1"},
		"create,upgrade,upgrade,upgrade":          {"the object needs everything", operations.Needed, ""},
		"create,change,upgrade,upgrade":           {"the newest change stays, because clients ask for it", operations.Present, "2"},
		"create,change,change,upgrade":            {"an earlier change does not", operations.Present, "1"},
		"create,upgrade!,change,upgrade":          {"there is no gap between an operation that stays and the newest one", operations.Present, ""},
		"create,stop,upgrade,change":              {"what stops the object stays", operations.Present, "2"},
		"create~,create,upgrade,change":           {"a failed creation may have created it", operations.Present, "2"},
		"create,delete~,delete~,upgrade":          {"the newest failed deletion stays", operations.Present, "1"},
		"create,stop,change,delete,create,change": {"operations of an earlier object with the same key do not stay", operations.Present, "0 1 2 3"},
		"create,delete,create,delete!":            {"the deletion that is not due stays, its creation does not", operations.Gone, "0 1 2"},
		"create":                                  {"one operation stays", operations.Present, ""},
	} {
		t.Run(history, func(t *testing.T) {
			var aged []operations.Aged

			for i, each := range strings.FieldsFunc(history, func(r rune) bool { return r == ',' }) {
				state := process.Succeeded

				switch {
				case strings.HasSuffix(each, "~"):
					state = process.Failed
				case strings.HasSuffix(each, "?"):
					state = process.InProgress
				}

				aged = append(aged, operations.Aged{
					ID: string(rune('0' + i)), Kind: strings.TrimRight(each, "!~?"), State: state, Due: !strings.ContainsAny(each, "!?"),
				})
			}

			var got []string
			for _, operation := range removal.Removable(test.subject, aged) {
				got = append(got, operation.ID)
			}

			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s: -want +got\n%s", test.reason, diff)
			}
		})
	}
}
