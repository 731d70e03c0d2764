package failure_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
)

func TestFor(t *testing.T) {
	t.Parallel()

	known := []string{"region", "machineType", "aws", "gcp", "in progress"}

	for given, want := range map[string]string{
		"regoin":      `; did you mean "region"?`,
		"machinetype": `; did you mean "machineType"?`,
		"asw":         `; did you mean "aws"?`,
		"ask":         "",
		"aw":          `; did you mean "aws"?`,
		"in progres":  `; did you mean "in progress"?`,
		"zones":       "",
		"":            "",
	} {
		if got := failure.Suggestion(given, known); got != want {
			t.Errorf("For(%q) = %q, want %q", given, got, want)
		}
	}
}
