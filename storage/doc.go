// Package storage opens the database of a service, PostgreSQL or SQLite, and brings its schema up to date. The stores in its
// sub-packages run one set of queries on both; what differs is a fragment of DB's.
package storage
