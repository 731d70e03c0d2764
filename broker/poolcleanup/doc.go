// Package poolcleanup frees dirty accounts of the account pool once a hook that operators provide has confirmed that they are
// empty.
//
// Every five minutes, one replica records the dirty accounts, and calls the hook for those that are due and that nothing uses.
// The hook empties the account, because the broker has no access to it. The broker frees the account only if the hook confirms
// the cleanup and the account has not changed since before the call. Otherwise, it calls the hook again at growing intervals.
package poolcleanup
