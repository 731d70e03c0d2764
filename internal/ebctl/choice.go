package ebctl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/suggestion"
)

// choice is the value of a flag with a fixed set of values. *choice implements pflag.Value.
type choice struct {
	// noun names the value in errors.
	noun string
	// values are the accepted values. Set accepts each also in other cases, and with underscores or hyphens for spaces.
	values []string
	// chosen is one of the values, or empty if the flag is not set.
	chosen string
}

// Set chooses a value. Its error suggests a similar value.
func (c *choice) Set(given string) error {
	plain := strings.NewReplacer("_", " ", "-", " ").Replace(strings.ToLower(given))

	if !slices.Contains(c.values, plain) {
		return fmt.Errorf("the %s is unknown; use %s%s", c.noun, strings.Join(c.values, ", "), suggestion.For(plain, c.values))
	}

	c.chosen = plain

	return nil
}

// String returns the chosen value.
func (c *choice) String() string { return c.chosen }

// Type returns the name of the type in help texts.
func (c *choice) Type() string { return c.noun }
