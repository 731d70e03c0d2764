package resources

import (
	"embed"
	"io/fs"
)

//go:embed catalog.yaml plans providers
var catalog embed.FS

// Catalog returns the files of the service catalog: catalog.yaml, plans/ and providers/.
func Catalog() fs.FS { return catalog }
