// Package bundles is the Bundle controller. It fetches the content of the Bundles of its classes, checks and converts it, stores it, and
// reports the result in their status.
//
// The reconciler never fetches content itself: an Unpacker does so with a limited number of workers, and wakes the controller when an
// attempt has ended. Once content is unpacked, the status contains its pinned source. If a replica loses the content, it fetches it
// again from the pinned source, and the digest must be the same. The content server of each replica therefore uses the same Unpacker.
package bundles
