// Package poolcleanup frees dirty accounts of the account pool once a hook of the operators has confirmed that they are empty.
//
// Every five minutes, one replica records the dirty accounts, and calls the hook for those that are due and that nothing uses.
// The hook empties the account, because the broker has no access to it. An account becomes free only if it has not changed since
// before the call. Until then, the hook is called again at growing intervals.
package poolcleanup
