// Package catalog is the service that the broker offers: its plans, what may be ordered with each of them, and what an order comes
// to once every default is filled in. It is read from files and checked as a whole.
package catalog
