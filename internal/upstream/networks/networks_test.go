package networks_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/upstream/networks"
)

func TestParse(t *testing.T) {
	if _, err := networks.Parse([]string{"10.0.0.0/8", "10.0.0.1"}); err == nil || !strings.Contains(err.Error(), `"10.0.0.1" is not a network`) {
		t.Errorf("an address without a prefix length: got %v", err)
	}
}
