package format

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	goyaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

const (
	annotationsFile     = "metadata/annotations.yaml"
	packageAnnotation   = "operators.operatorframework.io.bundle.package.v1"
	namespaceAnnotation = "operatorframework.io/suggested-namespace"
	// manifestFile is the only file in a converted bundle.
	manifestFile = "manifest.yaml"
)

// Registry is the registry+v1 format of Operator Lifecycle Manager: metadata/annotations.yaml contains the name of the package,
// and the manifests folder contains one ClusterServiceVersion, CustomResourceDefinitions and other objects. The operator must
// support the AllNamespaces install mode, and must not need APIServices or webhooks.
type Registry struct{}

// Convert returns a plain+v0 bundle that installs the operator for all namespaces. Equal bundles have equal results.
func (Registry) Convert(_ context.Context, bundle fs.FS) (fs.FS, error) {
	metadata, err := readMetadata(bundle)
	if err != nil {
		return nil, err
	}

	objects, err := Objects(bundle)
	if err != nil {
		return nil, err
	}

	operator, others, err := findOperator(objects)
	if err != nil {
		return nil, err
	}

	if err := operator.check(); err != nil {
		return nil, fmt.Errorf("the ClusterServiceVersion %s: %w", operator.Metadata.Name, err)
	}

	namespace, err := metadata.installNamespace(operator)
	if err != nil {
		return nil, err
	}

	rendered, err := render(operator, others, namespace)
	if err != nil {
		return nil, err
	}

	return plainBundle(rendered)
}

// metadata is the content of metadata/annotations.yaml.
type metadata struct {
	Annotations map[string]string `json:"annotations"`
}

func readMetadata(bundle fs.FS) (metadata, error) {
	content, err := fs.ReadFile(bundle, annotationsFile)

	switch {
	case errors.Is(err, fs.ErrNotExist):
		return metadata{}, fmt.Errorf("the bundle has no file %s: a registry+v1 bundle names its package there", annotationsFile)
	case err != nil:
		return metadata{}, fmt.Errorf("reading the annotations: %w", err)
	}

	var found metadata
	if err := yaml.Unmarshal(content, &found); err != nil {
		return metadata{}, fmt.Errorf("%s: %w", annotationsFile, err)
	}

	if found.Annotations[packageAnnotation] == "" {
		return metadata{}, fmt.Errorf("%s: the annotation %s is missing: set it to the name of the package", annotationsFile, packageAnnotation)
	}

	return found, nil
}

// installNamespace returns the install namespace that the operator suggests. If it suggests none, the namespace is named after the
// package.
func (m metadata) installNamespace(operator *clusterServiceVersion) (string, error) {
	namespace := cmp.Or(operator.Metadata.Annotations[namespaceAnnotation], m.Annotations[namespaceAnnotation], m.Annotations[packageAnnotation]+"-system")

	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return "", fmt.Errorf("the install namespace %q is not valid: set the annotation %s of the ClusterServiceVersion: %s",
			namespace, namespaceAnnotation, problems[0])
	}

	return namespace, nil
}

// plainBundle returns a bundle with one manifest. The bundle is a zip archive in memory, whose reader implements fs.FS.
func plainBundle(objects []*unstructured.Unstructured) (fs.FS, error) {
	var archive bytes.Buffer

	writer := zip.NewWriter(&archive)

	file, err := writer.Create(path.Join(manifests, manifestFile))
	if err != nil {
		return nil, fmt.Errorf("creating the manifest: %w", err)
	}

	encoder := goyaml.NewEncoder(file)
	encoder.SetIndent(2)

	for _, object := range objects {
		if err := encoder.Encode(object.Object); err != nil {
			return nil, fmt.Errorf("encoding %s: %w", identity(object), err)
		}
	}

	if err := errors.Join(encoder.Close(), writer.Close()); err != nil {
		return nil, fmt.Errorf("writing the manifest: %w", err)
	}

	return zip.NewReader(bytes.NewReader(archive.Bytes()), int64(archive.Len()))
}
