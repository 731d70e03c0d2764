// Package fakeagent plays the agent that works inside of a runtime: it connects with the token that it finds in its Secret, and tells in a
// CompassConnection what came of it. It works in any cluster, simulated or real, that knows CompassConnections.
package fakeagent
