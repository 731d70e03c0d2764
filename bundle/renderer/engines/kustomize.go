package engines

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/environment-broker/environment-broker/bundle/format"
	"github.com/environment-broker/environment-broker/internal/manifest"
)

// kustomize returns the objects of the kustomization at the root of the bundle. The default options of Kustomize forbid plugins,
// external programs, and files outside the root of each kustomization. The bundle is the only file system, and isolate has
// disabled HTTP requests.
func kustomize(files []file) ([]*unstructured.Unstructured, error) {
	system := filesys.MakeFsInMemory()

	for _, each := range files {
		if err := system.WriteFile(path.Join("/", each.name), each.content); err != nil {
			return nil, fmt.Errorf("%s: %w", each.name, err)
		}
	}

	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(system, "/")

	switch {
	case err != nil && strings.Contains(err.Error(), "no 'git' program"):
		return nil, errors.New("remote bases are not fetched: put them into the bundle")
	case err != nil:
		return nil, fmt.Errorf("building the kustomization: %w", err)
	}

	text, err := resources.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("encoding the objects of the kustomization: %w", err)
	}

	objects, err := manifest.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("the objects of the kustomization: %w", err)
	}

	if len(objects) == 0 {
		return nil, errors.New("the kustomization has no objects")
	}

	return objects, format.Distinct(objects)
}
