package operator_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.MainWithoutLeaks(m) }
