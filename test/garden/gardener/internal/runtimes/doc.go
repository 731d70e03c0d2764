// Package runtimes starts the API servers that play the runtime clusters of a garden: one for each runtime, or one for all of them. Or it
// plays these itself.
package runtimes
