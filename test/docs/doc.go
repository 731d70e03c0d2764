// Package docs checks the documentation. Every link must lead to an existing page or heading, and every page must be reachable
// from docs/README.md.
package docs
