// Package tutorials follows the tutorials in docs/tutorials that add steps. It applies their listings to an overlay of the source
// tree, and runs the tests that the listings contain and the other tests of the changed packages. It then builds a sandbox with
// the new steps, and checks that each step appears in the description of its process and in the timeline of an operation.
//
// A listing is a code block. The last path in backticks before the block names its file. A Go block is a new file; a diff changes an
// existing one. A diff has no line numbers. Its context and its removed lines must occur exactly once in the file, so use few
// context lines that are unlikely to change. Lines with @@ separate the hunks of a diff. Diffs of docs/operator/processes.md are
// not applied, but compared with the processes of the sandbox.
package tutorials
