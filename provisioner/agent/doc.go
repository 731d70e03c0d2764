// Package agent connects the agent that works inside of a runtime to Compass, and tells how it is connected. The agent finds in a Secret
// whom it is to connect to and the token that lets it do so once; what becomes of it, it writes into a CompassConnection.
package agent
