// Package writecheck tests whether the database of a service accepts writes. The readiness probe of the service uses it. A
// database that responds may still reject writes, for example because its disk is full or because it is read-only.
package writecheck
