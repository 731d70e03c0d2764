// Package fakeagent simulates the runtime agent of Compass: it connects with the token in its Secret and reports the result in a
// CompassConnection. It works in every cluster, simulated or real, that knows CompassConnections.
package fakeagent
