package program_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/program"
)

func TestSettings(t *testing.T) {
	t.Parallel()

	current := defaults()
	current.Token, current.Address, current.Database.Password = "hidden-token", "https://user:hidden-url@host/path", "hidden-password"

	got := map[string]program.Setting{}
	for _, setting := range program.Settings(program.Prefix, defaults(), current) {
		got[setting.Name] = setting
	}

	for _, want := range []program.Setting{
		{Name: "APP_TOKEN", Changed: true, Secret: true},
		{Name: "APP_DATABASE_PASSWORD", Changed: true, Secret: true},
		{Name: "APP_ADDRESS", Value: "https://***@host/path", Changed: true},
		{Name: "APP_SECRETS", Value: "aws:aws"},
		{Name: "APP_WORKERS", Value: "60"},
		{Name: "APP_FORMER_WORKERS", Value: "1"},
	} {
		if got[want.Name] != want {
			t.Errorf("%s: got %+v, want %+v", want.Name, got[want.Name], want)
		}
	}

	if len(got) != len(program.Variables(program.Prefix, current)) {
		t.Error("the settings must contain every variable")
	}

	if text := fmt.Sprint(got); strings.Contains(text, "hidden") {
		t.Errorf("the settings contain a secret: %s", text)
	}
}
