// Package store is the storage of an API server in memory, for objects of any kind that its scheme knows. It is the object tracker of
// controller-runtime's fake client for Gardener's API, and the storage behind the simulated API servers of the runtimes.
//
// The store guarantees:
//   - An acknowledged change survives the death of the process: it is in a file before anybody sees it.
//   - Each change has a resource version of its own, in the order of the changes. A watch that starts at the version of a list misses none.
//   - Rules complete and check each change after it was merged and before it is stored, as admission plugins do.
//   - Server-side apply records who owns which field.
//
// A kind needs nothing here but its registration in the scheme, as a Go type or as unstructured.Unstructured. Give Options.Types a type
// converter if the items of its lists have owners of their own.
package store
