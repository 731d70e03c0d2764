// Package expiry ends the instances of plans that do not promise to last: it takes their runtime away and keeps them until they are
// deleted.
package expiry
