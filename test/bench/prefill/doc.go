// Package prefill fills a database of the broker with as many instances as are wanted, each like one that the broker has made itself.
package prefill
