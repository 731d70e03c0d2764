// Package prefill fills a database of the broker with copies of an instance that the broker has created.
package prefill
