// Package docs checks the documentation: the shell commands in the tutorials and in the pages for users and operators succeed on a
// sandbox, the page on dependencies lists every module and tool, every promise in SECURITY.md and every row of the fault tables
// has a test, and every decoder has a fuzz target.
//
// A new page with commands may need a script in testdata/commands, which prepares the state that the commands assume.
package docs
