package console

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }
