// Package follow waits for the end of an operation: it asks the broker again and again, shows what it learns, and bears a broker
// that is away for a while.
package follow
