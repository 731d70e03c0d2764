package storage

// SealedColumn is a column of envelopes, which package secret makes.
type SealedColumn struct {
	// Table has a primary key named id.
	Table, Column string
	// Place is what the envelope of a row is bound to.
	Place func(id string) string
}
