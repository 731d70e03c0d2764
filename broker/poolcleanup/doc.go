// Package poolcleanup makes dirty accounts of the account pool free after a hook of the operators has confirmed that they are empty.
//
// Every five minutes, one replica records which accounts are dirty, and asks the hook about those that are due and that nothing uses. The
// hook empties the account; the broker has no access to it. An account becomes free only if it has not changed since before the hook was
// asked. Until then it is asked again, at growing intervals.
package poolcleanup
