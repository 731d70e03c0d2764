package ebctl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// choice is the value of a flag with a fixed set of values. *choice implements pflag.Value.
type choice struct {
	// noun names the kind of value in errors and help texts.
	noun string
	// values are the accepted values. Set ignores case and accepts underscores or hyphens in place of spaces.
	values []string
	// chosen is the selected value, or empty if the flag is not set.
	chosen string
}

// Set selects a value. The error for an unknown value suggests a similar one.
func (c *choice) Set(given string) error {
	plain := strings.NewReplacer("_", " ", "-", " ").Replace(strings.ToLower(given))

	if !slices.Contains(c.values, plain) {
		return fmt.Errorf("unknown %s; use one of %s%s", c.noun, strings.Join(c.values, ", "), failure.Suggestion(plain, c.values))
	}

	c.chosen = plain

	return nil
}

// String returns the selected value.
func (c *choice) String() string { return c.chosen }

// Type returns the name of the type in help texts.
func (c *choice) Type() string { return c.noun }
