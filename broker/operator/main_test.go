package operator_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Main(leakless{m}) }

type leakless struct{ *testing.M }

func (l leakless) Run() int {
	code := l.M.Run()

	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	return code
}
