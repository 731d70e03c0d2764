package operatorapi

import "time"

// Catalog is what a replica of the broker offers.
type Catalog struct {
	// ETag is the same on every replica that offers the same.
	ETag string `json:"etag"`
	// Plans are the names of those that new instances may be ordered of.
	Plans []string `json:"plans"`
	// Problem is there while the files of the catalog are wrong: then what is offered is what they were before.
	Problem *CatalogProblem `json:"problem,omitempty"`
}

// CatalogProblem is what is wrong with the files of the catalog.
type CatalogProblem struct {
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}
