package faulttable_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
)

func TestMatches(t *testing.T) {
	cases := map[string]struct {
		reason, cell, test, text string
		want                     bool
	}{
		"Equal":       {"the page quotes the text", "`EDP cannot be reached`", "away", "EDP cannot be reached", true},
		"Other":       {"the page quotes another text", "`EDP cannot be reached`", "away", "EDP is unreachable", false},
		"More":        {"without an ellipsis, the whole text is quoted", "`EDP cannot be reached`", "away", "EDP cannot be reached: secret", false},
		"Ellipsis":    {"an ellipsis stands for the rest", "`… of EDP: …`", "away", "the metadata of EDP: none", true},
		"Second":      {"a row may have several texts", "`one`, or `two` (a note)", "row", "two", true},
		"Unquoted":    {"prose is no text", "as above", "row", "as above", false},
		"Nothing":     {"a fault may show nothing", "nothing: it is gone", "404", "", true},
		"Something":   {"the page says nothing, but there is a text", "nothing: it is gone", "404", "it is gone", false},
		"Missing":     {"the page says a text, but there is none", "`it is gone`", "404", "", false},
		"Duration":    {"tests have shorter timeouts", "`no response within 1m30s` (APP_TIMEOUT)", "slow", "no response within 1s", true},
		"Status":      {"a row may combine several statuses", "`HTTP status 429 Too Many Requests`", "429, 503/503", "HTTP status 503 Service Unavailable", true},
		"WrongStatus": {"the text must name the status of the fault", "`HTTP status 429 Too Many Requests`", "429, 503/503", "HTTP status 429 Too Many Requests", false},
		"MoreStatus":  {"what follows the status counts", "`HTTP status 401: an operator …`", "401", "HTTP status 401", false},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := faulttable.Matches(c.cell, c.test, c.text); (err == nil) != c.want {
				t.Errorf("%s: got %v", c.reason, err)
			}
		})
	}
}
