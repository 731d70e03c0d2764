package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/secret"
)

const hush = "hush"

// holder is a configuration struct with a secret.
type holder struct {
	User     string        `json:"user"`
	Password secret.String `json:"password"`
}

func TestStringIsMasked(t *testing.T) {
	password := secret.String(hush)
	config := holder{User: "me", Password: password}

	printed := func(format string) func(*testing.T) string {
		return func(*testing.T) string { return fmt.Sprintf(format, password) }
	}
	encoded := func(encode func(any) ([]byte, error), value any) func(*testing.T) string {
		return func(t *testing.T) string {
			t.Helper()

			text, err := encode(value)
			if err != nil {
				t.Fatal(err)
			}

			return string(text)
		}
	}

	cases := map[string]struct {
		reason string
		show   func(*testing.T) string
	}{
		"%v":                {"the verb of error messages", printed("%v")},
		"%+v":               {"the verb for debugging", printed("%+v")},
		"%#v":               {"the verb for debugging in Go syntax", printed("%#v")},
		"%s":                {"the verb of strings", printed("%s")},
		"%q":                {"the verb of quoted strings", printed("%q")},
		"%x":                {"hexadecimal text is readable too", printed("%x")},
		"%d":                {"fmt prints the value for a verb that does not apply", printed("%d")},
		"%20s":              {"a width changes nothing", printed("%20s")},
		"struct":            {"configurations are printed as a whole", func(*testing.T) string { return fmt.Sprintf("%+v", config) }},
		"pointer to struct": {"configurations are printed as a whole", func(*testing.T) string { return fmt.Sprintf("%#v", &config) }},
		"list":              {"a slice of secrets", func(*testing.T) string { return fmt.Sprint([]secret.String{password}) }},
		"map":               {"a map of secrets", func(*testing.T) string { return fmt.Sprint(map[secret.String]secret.String{password: password}) }},
		"error":             {"errors end up in logs and responses", func(*testing.T) string { return fmt.Errorf("no entry for %s", password).Error() }},
		"JSON":              {"configurations are dumped as JSON", encoded(json.Marshal, config)},
		"JSON of a pointer": {"configurations are dumped as JSON", encoded(json.Marshal, &config)},
		"YAML":              {"configurations are dumped as YAML", encoded(yaml.Marshal, config)},
		"log as JSON":       {"a field of a log line", logged(&logrus.JSONFormatter{}, password)},
		"struct in a log":   {"a field of a log line", logged(&logrus.JSONFormatter{}, config)},
		"log as text":       {"a field of a log line on a terminal", logged(&logrus.TextFormatter{}, config)},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			shown := c.show(t)
			if strings.Contains(shown, hush) || strings.Contains(shown, fmt.Sprintf("%x", hush)) {
				t.Errorf("%s: the secret is in %q", c.reason, shown)
			}

			if !strings.Contains(shown, secret.Mask) {
				t.Errorf("%s: %q does not show that a secret is set", c.reason, shown)
			}
		})
	}
}

func logged(formatter logrus.Formatter, value any) func(*testing.T) string {
	return func(*testing.T) string {
		var lines bytes.Buffer

		logger := logrus.New()
		logger.SetOutput(&lines)
		logger.SetFormatter(formatter)
		logger.WithField("config", value).Info(value)

		return lines.String()
	}
}

func TestRevealReturnsTheText(t *testing.T) {
	if got := secret.String(hush).Reveal(); got != hush {
		t.Errorf("got %q", got)
	}

	var config holder
	if err := json.Unmarshal([]byte(`{"password":"hush"}`), &config); err != nil || config.Password.Reveal() != hush {
		t.Errorf("a secret read from JSON is %q, %v", config.Password.Reveal(), err)
	}
}
