// Package resources embeds the service catalog, the sample releases and the CustomResourceDefinitions. The alert rules for Prometheus are in the
// same folder, but are not embedded.
package resources

import (
	"embed"
	"io/fs"
)

//go:embed catalog.yaml platforms.yaml plans providers
var catalog embed.FS

//go:embed releases
var releases embed.FS

//go:embed crds
var definitions embed.FS

//go:embed crds rbac
var bundleProvisioner embed.FS

// Catalog returns the files of the service catalog: catalog.yaml, platforms.yaml, plans/ and providers/.
func Catalog() fs.FS { return catalog }

// Releases returns the sample releases, which the sandbox installs. Each release is in a folder that is named after its version.
func Releases() fs.FS {
	found, err := fs.Sub(releases, "releases")
	if err != nil {
		return releases // cannot happen: the path is valid
	}

	return found
}

// CustomResourceDefinitions returns the definitions of Bundle and BundleDeployment, which are separate files in crds/.
func CustomResourceDefinitions() fs.FS { return definitions }

// BundleProvisioner returns the objects that a cluster needs for the bundle provisioner: the definitions in crds/ and the roles in rbac/.
func BundleProvisioner() fs.FS { return bundleProvisioner }
