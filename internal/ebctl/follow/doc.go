// Package follow waits for the end of an operation and shows its progress. Live redraws the progress in place on a terminal;
// Lines prints a line for each change, for logs and pipes.
//
// A Follower polls the operation until the operation ends, the limit is reached, or the user interrupts the wait. An interrupt
// does not stop the operation. If the broker is unavailable, the view shows the error and polling continues. To add another
// output style, implement View.
package follow
