// Package follow waits for the end of an operation and shows its progress: redrawn in place on a terminal by Live, a line for each change
// elsewhere by Lines.
//
// A wait never affects the operation. It tolerates outages of the broker: temporary errors are shown and retried.
package follow
