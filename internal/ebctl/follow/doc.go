// Package follow waits for the end of an operation and shows its progress. Live redraws the progress in place on a terminal; Lines prints
// a line for each change, for logs and pipes.
//
// A Follower polls the operation until it ends, the limit is reached, or the user interrupts. Polling never changes the operation, and the
// operation continues after an interruption. During an outage of the broker, the view shows the error and polling continues. Another kind
// of output is another View.
package follow
