// Package console tests the console in a real browser: Chromium, which `make chromium` installs, with a broker on PostgreSQL and the fake
// garden.
//
// Each test has a browser of its own without cookies. A test fails if a page violates the Content-Security-Policy, throws an error
// or requests anything from another origin. axe-core (testdata/axe.min.js, 4.14.1, MPL 2.0) checks the accessibility of pages in
// light and dark mode and at the width of a phone. If CONSOLE_SCREENSHOTS is set, it names a folder to which the tests write the
// screenshots of the documentation: see `make screenshots`.
package console
