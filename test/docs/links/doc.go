// Package links checks the documentation without running it: every link leads to a page or heading that exists, and the navigation in
// docs/README.md has every page, and every table a header. `make lint` runs its tests.
package links
