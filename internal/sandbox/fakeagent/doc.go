// Package fakeagent simulates the Compass Runtime Agent: it connects with the token in a Secret and reports the result in a
// CompassConnection. It works in any cluster, simulated or real, that serves CompassConnections.
//
// An agent never exchanges a token twice, because Director accepts each token only once. All persistent state is in the cluster:
// a restarted agent detects an exchanged token by the credentials that it stored there. Unlike the real agent, it installs
// nothing and calls no applications.
package fakeagent
