package program_test

import (
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// FuzzVariable reads arbitrary values of variables of each type that configurations have. An error names the variable and does not contain
// the value, which may be a secret in the wrong variable.
func FuzzVariable(f *testing.F) {
	type config struct {
		Text      string                   `env:"TEXT"`
		Secret    secret.String            `env:"SECRET"`
		Flag      bool                     `env:"FLAG"`
		Count     int                      `env:"COUNT"`
		Share     float64                  `env:"SHARE"`
		Duration  time.Duration            `env:"DURATION"`
		Texts     map[string]string        `env:"TEXTS"`
		Counts    map[string]int           `env:"COUNTS"`
		Durations map[string]time.Duration `env:"DURATIONS"`
	}

	names := []string{"TEXT", "SECRET", "FLAG", "COUNT", "SHARE", "DURATION", "TEXTS", "COUNTS", "DURATIONS"}

	for i := range names {
		for _, value := range []string{"", "text", "true", "1", "0.5", "90s", "a:b,c:d", "a:1,b:2", "a:336h", "a,b", ":", "${HOME}", "9223372036854775808"} {
			f.Add(uint8(i), value)
		}
	}

	f.Fuzz(func(t *testing.T, which uint8, value string) {
		name := "X_" + names[int(which)%len(names)]

		_, err := program.ReadSettings("X_", config{Count: 1}, []string{name + "=" + value})
		if err == nil {
			return
		}

		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%q: the error does not name the variable: %v", name, value, err)
		}

		if marked := "m4rk3d" + value; len(value) < 32 {
			if _, err = program.ReadSettings("X_", config{}, []string{name + "=" + marked}); err != nil && strings.Contains(err.Error(), "m4rk3d") {
				t.Errorf("%s=%q: the error contains the value: %v", name, marked, err)
			}
		}
	})
}
