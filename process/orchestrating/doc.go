// Package orchestrating is the process of orchestrations, which upgrade many instances. Its operation is the conductor of the
// orchestration: it plans the targets once, and then starts upgrades whenever targets are due and others have ended. It frees its
// worker in between. All state is in rows, so any replica continues after a crash.
package orchestrating
