//go:build !garden

package ebctl_test

import "testing"

// tests runs the tests of the package.
type tests struct{ *testing.M }
