// Package bundles is the Bundle controller. It fetches the content of the Bundles of its classes, checks and converts it, stores it, and
// reports the result in their status.
//
// Reconciling never fetches: an Unpacker does that with a bounded number of workers, and wakes the controller when it is done. Once content is
// unpacked, its source is pinned in the status. It is fetched again only if this replica has lost it, by its pin, and must then have the
// same digest. The content server of each replica shares the Unpacker for that purpose.
package bundles
