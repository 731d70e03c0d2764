// Package lifecycle runs a program and its parts: servers, the engine, periodic work.
//
// Parts start together, because whatever one of them needs exists before they run. They stop in the opposite order, one after the other and
// within a limit, so a part can use those before it until it has ended. When one part ends, all others stop. A panic in a part is not
// recovered. The package imports nothing of this repository; package replica builds the parts of a service.
package lifecycle
