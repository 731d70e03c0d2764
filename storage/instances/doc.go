// Package instances stores the broker's service instances.
package instances
