// Package audit is about who did what, and when. What is accepted as an operation is kept with the operation; everything else, also what
// was refused, is an entry of its own. Nothing of it is ever changed.
package audit
