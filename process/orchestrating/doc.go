// Package orchestrating contains the process of orchestrations, which upgrade many instances. Its operation is the conductor of
// the orchestration: it selects the targets once, and then starts upgrades whenever targets are due and capacity is free. It
// occupies no worker in between. All state is in rows, so any replica can continue after a crash.
package orchestrating
