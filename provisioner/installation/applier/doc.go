// Package applier installs plans by server-side apply. What it has put on a cluster, and how far it is, stands in an inventory on the
// cluster itself, so that any replica goes on where another one ended.
package applier
