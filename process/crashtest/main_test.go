package crashtest

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }
