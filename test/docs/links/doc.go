// Package links checks the documentation without running its commands: every link leads to an existing page or heading, the
// navigation in docs/README.md lists every page, and every table has a header. `make lint` runs its tests.
package links
