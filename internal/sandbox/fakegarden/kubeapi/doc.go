// Package kubeapi is a small Kubernetes API server: an HTTP handler whose objects are in memory and in files. The fake garden serves Gardener's
// API with it, and each simulated runtime serves its own objects.
//
// A server supports get, list, watch, create, update, merge patch, server-side apply and delete, the subresource status, and hooks for other
// subresources. It serves the kinds of Options.Kinds, as Go types or as unstructured objects. Client returns an ordinary client that calls the
// handler without a network; any Kubernetes client can use it through a listener.
//
// The server guarantees:
//   - An acknowledged change survives the death of the process: its file is written before any client sees the change.
//   - Each change has its own resource version, in the order of the changes. A watch that starts at the version of a list misses no change.
//   - Options.Admit completes and checks each change after it was merged and before it is stored, as admission plugins do.
//   - An update with an outdated resource version is a conflict, as is a deletion with another UID.
//   - Server-side apply records which manager owns which field.
//
// The server has no admission rules, no defaults and no authorization of its own. A rule goes into the Admit function of its API, a kind into
// the list of kinds. A new verb goes into Server.answer.
package kubeapi
