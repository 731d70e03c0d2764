// Package cleanuphook asks a hook of the operators whether a dirty account of the account pool is empty. The hook is an HTTPS service that
// empties accounts at the cloud provider. The broker itself has no access to accounts.
package cleanuphook
