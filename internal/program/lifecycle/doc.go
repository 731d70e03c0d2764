// Package lifecycle runs a program and its parts, such as servers, the engine and periodic work.
//
// All parts start together. Their constructors have already opened connections and listeners, so no part waits for another. Parts
// stop one after the other in reverse order, so a part can use earlier parts until it has ended. The whole stop has a time limit.
// If a part ends by itself, all others stop. A panic in a part ends the process.
//
// Package replica lists the parts of a service. For work at an interval, use a Periodic. For the same work on several items at the same
// time, use Each.
package lifecycle
