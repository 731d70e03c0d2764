// Package admission holds the rules by which Gardener's API server completes and refuses Shoots, as far as clients of the local garden
// can run into them. The errors have the reasons and the texts of the real ones: what a Shoot says of itself is refused as Invalid (422),
// what it asks of others (its project, its provider) as Forbidden (403).
package admission
