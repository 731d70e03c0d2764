package resources

import (
	"embed"
	"io/fs"
)

//go:embed catalog.yaml platforms.yaml plans providers
var catalog embed.FS

// Catalog returns the files of the service catalog: catalog.yaml, platforms.yaml, plans/ and providers/.
func Catalog() fs.FS { return catalog }
