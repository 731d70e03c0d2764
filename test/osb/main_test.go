package osb

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
)

func TestMain(m *testing.M) {
	flag.Parse()

	// A story of the model takes seconds. Who wants more of them says so: -rapid.checks, or SOAK_DURATION.
	given := false

	flag.Visit(func(each *flag.Flag) { given = given || each.Name == "rapid.checks" })

	if checks := flag.Lookup("rapid.checks"); checks != nil && !given {
		if err := checks.Value.Set("3"); err != nil {
			panic(err)
		}
	}

	postgrestest.Main(m)
}

// soakDuration is how long tests go on that can go on for ever: not at all, unless SOAK_DURATION says so.
func soakDuration(t testing.TB) time.Duration {
	t.Helper()

	text := os.Getenv("SOAK_DURATION")
	if text == "" {
		return 0
	}

	duration, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("SOAK_DURATION: %v", err)
	}

	return duration
}
