// Package avs manages evaluations in the availability service (AvS), which monitors clusters.
//
// Each cluster has an internal evaluation and, except for plans trial and free, an external one, with which AvS requests the health of
// the cluster. AvS assigns the IDs and recognizes no repeated request: a creation that is repeated after a lost response may create a
// second evaluation. All other calls can be repeated.
package avs
