// Package cleanuphook calls a hook, provided by the operators, that empties dirty accounts of the account pool. The hook is an
// HTTPS service with access to the cloud provider. The broker itself has no access to accounts.
package cleanuphook
