// Package docs checks the documentation: every link leads to a page or heading that exists, every page can be reached from
// docs/README.md, the shell commands for users and operators succeed on a sandbox, and the pages on dependencies and on security name
// what the repository contains.
//
// A new page with commands may need a script in testdata/commands, which prepares the state that the commands assume.
package docs
