package runtimeorder_test

import (
	"regexp"
	"testing"

	"github.com/environment-broker/environment-broker/internal/runtimeorder"
)

func TestNameForDirector(t *testing.T) {
	taken := regexp.MustCompile(`^[a-z-][a-z0-9-]{0,35}$`)

	for name, c := range map[string]struct{ reason, want string }{
		"first":    {"people find the instance by its name", "first-c-1234567"},
		"MyOwn":    {"Director takes no capitals", "myown-c-1234567"},
		"0f5b2c7e": {"nor a digit first, as the name has that comes from the instance's id", "runtime-0f5b2c7e-c-1234567"},
		"a-name-as-long-as-names-of-instances-may-be-and-no-longer-than-it": {"nor more than 36 characters", "a-name-as-long-as-names-of-c-1234567"},
		"a-name-of-twenty-five-abc-":                                        {"what is cut off leaves no hyphen behind", "a-name-of-twenty-five-abc-c-1234567"},
	} {
		order := instance("aws", "eu-central-1a")
		order.Name = name

		got, err := runtimeorder.New(order)
		if err != nil {
			t.Fatal(err)
		}

		if told := got.RuntimeInput.Name; told != c.want || !taken.MatchString(told) {
			t.Errorf("%s: %s is told to Director as %q, want %q", c.reason, name, told, c.want)
		}
	}
}
