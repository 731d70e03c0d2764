// Package fakeagent simulates the runtime agent of Compass: it connects with the token in its Secret and reports the result in a
// CompassConnection. It works in every cluster, simulated or real, that knows CompassConnections.
//
// An agent exchanges no token twice, because Director accepts each token once. A restarted agent recognizes an exchanged token by the
// credentials in the cluster, where all lasting state is. The agent installs nothing and calls no application.
package fakeagent
