// Package load sends HTTP requests as fast as they are answered, from a number of clients that each wait for one answer at a time.
package load
