// Package kubeapi is a small Kubernetes API server: an HTTP handler whose objects are in memory and in files. The fake garden
// uses it to serve Gardener's API, and each simulated runtime uses it to serve its own objects.
//
// A server supports get, paginated list, watch, create, update, merge patch, strategic merge patch, server-side apply and delete,
// the status subresource, and handlers for other subresources. It serves the kinds in Options.Kinds, as Go types or as
// unstructured objects. Server.Client returns a client that calls the handler without a network. Behind a listener, the handler
// serves any Kubernetes client.
//
// The server guarantees:
//   - An acknowledged change survives the death of the process: the file is written before any client sees the change.
//   - Resource versions are unique and ordered like the changes. A watch that starts at the version of a list misses no change.
//   - Options.Admit completes and validates each change after the merge and before the change is stored, like admission plugins.
//   - An update with an outdated resource version is a conflict, as is a deletion with a different UID.
//   - Server-side apply records which manager owns which field.
//
// The server itself has no admission rules, no defaults and no authorization. To add a rule or a kind, extend the Admit function
// or the list of kinds of the package that opens the server; to add a verb, extend Server.answer.
package kubeapi
