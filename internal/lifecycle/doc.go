// Package lifecycle runs a program and its parts: servers, the engine, periodic work.
//
// All parts start together; their constructors have already opened what they need. Parts stop one after the other, the last one first and
// within a limit, so a part can use earlier parts until it has ended. If a part ends by itself, all others stop. A panic in a part ends the
// process.
//
// Package replica lists the parts of a service. Work at an interval is a Periodic.
package lifecycle
