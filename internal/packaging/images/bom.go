package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// bomType is the media type of SBOMs.
const bomType types.MediaType = "application/spdx+json"

// bom returns the SBOM of an image, as an artifact whose subject is the image.
func (o order) bom(described image, architecture string, made v1.Image) (v1.Image, error) {
	subject, err := partial.Descriptor(made)
	if err != nil {
		return nil, fmt.Errorf("describing the image: %w", err)
	}

	content, err := o.document(described, architecture, subject.Digest)
	if err != nil {
		return nil, err
	}

	artifact, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), bomType),
		static.NewLayer(content, bomType))
	if err != nil {
		return nil, fmt.Errorf("adding the SBOM: %w", err)
	}

	referring, is := mutate.Subject(artifact, *subject).(v1.Image)
	if !is {
		return nil, fmt.Errorf("the SBOM is %T, which is not an image", referring)
	}

	return referring, nil
}

// document returns an SPDX document that lists the Go modules of the programs in an image. It reads the modules from the build
// information that the Go linker stores in each program.
func (o order) document(described image, architecture string, digest v1.Hash) ([]byte, error) {
	modules := map[string]string{}

	for _, name := range described.programs {
		info, err := buildinfo.ReadFile(filepath.Join(o.folderOf(architecture), name))
		if err != nil {
			return nil, fmt.Errorf("reading the modules of %s: %w", name, err)
		}

		modules["stdlib"] = info.GoVersion
		modules[info.Main.Path] = o.version

		for _, module := range info.Deps {
			if module.Replace != nil {
				module = module.Replace
			}

			modules[module.Path] = module.Version
		}
	}

	const root common.ElementID = "image"

	document := spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      described.name + "-" + o.version + "-" + architecture,
		DocumentNamespace: source + "/spdx/" + described.name + "/" + digest.Hex,
		CreationInfo: &spdx.CreationInfo{
			Created: o.created.Format(time.RFC3339), Creators: []common.Creator{{CreatorType: "Tool", Creator: "environment-broker-images"}},
		},
		Packages: []*spdx.Package{{
			PackageName: described.name, PackageVersion: o.version, PackageSPDXIdentifier: root, PackageDownloadLocation: "NOASSERTION",
			PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: digest.Hex}},
		}},
		Relationships: []*spdx.Relationship{relation("DOCUMENT", common.TypeRelationshipDescribe, root)},
	}

	for number, name := range slices.SortedFunc(maps.Keys(modules), cmp.Compare[string]) {
		id := common.ElementID(fmt.Sprintf("module-%d", number))
		document.Packages = append(document.Packages, &spdx.Package{
			PackageName: name, PackageVersion: modules[name], PackageSPDXIdentifier: id, PackageDownloadLocation: "NOASSERTION",
			PackageExternalReferences: []*spdx.PackageExternalReference{{
				Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: "pkg:golang/" + name + "@" + modules[name],
			}},
		})
		document.Relationships = append(document.Relationships, relation(root, common.TypeRelationshipContains, id))
	}

	var content bytes.Buffer
	if err := spdxjson.Write(&document, &content); err != nil {
		return nil, fmt.Errorf("encoding the SBOM: %w", err)
	}

	return content.Bytes(), nil
}

func relation(from common.ElementID, kind string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(from)), RefB: common.MakeDocElementID("", string(to)), Relationship: kind,
	}
}
