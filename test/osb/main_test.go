package osb

import (
	"flag"
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
)

func TestMain(m *testing.M) {
	flag.Parse()

	// By default, the model runs only three times, because one run takes seconds. -rapid.checks or SOAK_DURATION adds runs.
	given := false

	flag.Visit(func(each *flag.Flag) { given = given || each.Name == "rapid.checks" })

	if checks := flag.Lookup("rapid.checks"); checks != nil && !given {
		if err := checks.Value.Set("3"); err != nil {
			panic(err)
		}
	}

	postgrestest.Main(m)
}
