// Package docs checks the documentation: every link leads to a page or heading that exists, and every page can be reached from
// docs/README.md.
package docs
