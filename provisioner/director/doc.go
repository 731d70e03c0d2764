// Package director registers runtimes in Director, tells it how they are, and gets one-time tokens for their agents.
//
// Its errors are of package failure. The kinds say what to do next: Invalid, Conflict and NotFound are Director's decision,
// Transient that the same call may succeed later, since Director did not answer, made no sense, or did not accept our credentials,
// which somebody then has to repair.
package director
