package logging_test

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/environment-broker/environment-broker/internal/logging"
)

func TestFormats(t *testing.T) {
	cases := map[string]struct {
		reason string
		config logging.Config
		want   string
	}{
		"default": {"programs read JSON", logging.DefaultConfig(), `^\{"instanceID":"i","level":"info","msg":"started","service":"broker","time":"[^"]+"\}\n$`},
		"text": {
			"people read the time of day, and a file has no colors",
			logging.Config{Level: "info", Format: logging.FormatText},
			`^time="\d{4}-[^"]+" level=info msg=started instanceID=i service=broker\n$`,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var lines bytes.Buffer

			log, err := logging.New("broker", c.config, &lines)
			if err != nil {
				t.Fatal(err)
			}

			log.Debug("dropped")
			log.WithField(logging.InstanceID, "i").Info("started")

			if !regexp.MustCompile(c.want).MatchString(lines.String()) {
				t.Errorf("%s: got %q, want %s", c.reason, lines.String(), c.want)
			}
		})
	}
}

func TestInvalidConfiguration(t *testing.T) {
	for _, c := range []struct {
		config logging.Config
		want   string
	}{
		{logging.Config{Level: "loud", Format: logging.FormatJSON}, `LOG_LEVEL: "loud" is unknown: use debug, info, warning or error`},
		{logging.Config{Level: "info", Format: "xml"}, `LOG_FORMAT: "xml" is unknown: use json or text`},
	} {
		if _, err := logging.New("broker", c.config, nil); err == nil || err.Error() != c.want {
			t.Errorf("%+v: got %v, want %s", c.config, err, c.want)
		}
	}
}
