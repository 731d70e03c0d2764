// Package bundles is the Bundle controller. For each Bundle of its classes, it fetches the content, checks, converts and stores
// it, and reports the result in the status.
//
// The reconciler never fetches content itself: an Unpacker does so with a limited number of workers, and wakes the controller when
// an attempt has ended. Once content is unpacked, the status contains its pinned source. A replica that has lost the content
// fetches it again from the pinned source, and the digest must be the same. For this purpose, the content server of each replica
// uses the Unpacker of the replica.
package bundles
