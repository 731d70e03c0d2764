// Package crashtest runs a story again and again, and has something go wrong in another place each time: at every write of the
// engine's store, and at every call to the outside.
//
// A Scene builds a world anew, on fake time, and plays a story in it: operations are accepted and carried to their end by replicas,
// each of which reaches the store and the outside over a Line of its own. The first run is undisturbed and tells where the fault
// points are. In each further run one of them, or two, meets a Fault: the replica dies before or after the call, the call or its
// answer is lost, or the replica is frozen and goes on when another one has taken over.
//
// Whatever went wrong, the end has to be that of the undisturbed run: the same states and data, the same things outside, no step of a
// finished stage run again, and timelines without gaps.
package crashtest
