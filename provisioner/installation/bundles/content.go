package bundles

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

const (
	// fileObjects is the archive path of the file with the objects. Its format is plain+v0, with one JSON object per line.
	fileObjects = "manifests/objects.json"
	// fileMasked is the archive path of the file with the strings that the bundle provisioner must mask in conditions and events.
	fileMasked = "metadata/masked.json"
	// fileKey is the archive path of the file with the HMAC key.
	fileKey = "metadata/key"

	// contentVersion is included in every content identity. Change it whenever the archive format changes.
	contentVersion = "1"
	// contentDigits is the number of HMAC bytes that a label contains. A byte takes two hexadecimal digits.
	contentDigits = 20
)

// part is the content of one BundleDeployment.
type part struct {
	// name is the name of the component, or empty for the Namespaces of all components.
	name, namespace string
	// where describes the part in messages to users.
	where string
	// content is an HMAC that identifies the content; see identity.
	content string
	// render returns the objects, with the placeholders replaced by values.
	render func(ctx context.Context) ([]*unstructured.Unstructured, error)
	masked []string
}

// mask returns text with the part's secret values masked.
func (p part) mask(text string) string { return secret.MaskIn(text, p.masked...) }

// parts returns one part for each component of a plan, in installation order. If the manifests define Namespaces, the first part
// contains these.
func (i *Installer) parts(ctx context.Context, plan installation.Plan, key []byte) ([]part, error) {
	var (
		parts    []part
		defining []installation.Component
		inputs   []byte
	)

	for index, component := range plan.Components {
		files, err := i.Manifests.Manifests(ctx, component.Source)
		if err != nil {
			return nil, err
		}

		input, err := component.Inputs(files)
		if err != nil {
			return nil, err
		}

		keep := func(*unstructured.Unstructured) bool { return true }

		if definesNamespace(files) {
			defining, inputs, keep = append(defining, component), append(inputs, input...), isNoNamespace
		}

		parts = append(parts, part{
			name: component.Name, namespace: component.Namespace, masked: component.Secrets(),
			where:   fmt.Sprintf("component %d of %d (%s)", index+1, len(plan.Components), component.Name),
			content: identity(key, input),
			render: func(context.Context) ([]*unstructured.Unstructured, error) {
				objects, err := component.Objects(files)

				return slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool { return !keep(object) }), err
			},
		})
	}

	if len(defining) == 0 {
		return parts, nil
	}

	return slices.Insert(parts, 0, i.namespaces(defining, identity(key, inputs))), nil
}

// namespaces returns the part that contains the components' Namespaces.
func (i *Installer) namespaces(components []installation.Component, content string) part {
	whole := part{namespace: components[0].Namespace, where: "the namespaces of the components", content: content}

	for _, component := range components {
		whole.masked = append(whole.masked, component.Secrets()...)
	}

	whole.render = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		var namespaces []*unstructured.Unstructured

		for _, component := range components {
			files, err := i.Manifests.Manifests(ctx, component.Source)
			if err != nil {
				return nil, err
			}

			objects, err := component.Objects(files)
			if err != nil {
				return nil, err
			}

			namespaces = append(namespaces, slices.DeleteFunc(objects, isNoNamespace)...)
		}

		return namespaces, nil
	}

	return whole
}

// namespaceKind matches the kind Namespace in YAML and JSON.
var namespaceKind = regexp.MustCompile(`kind["']?\s*:\s*["']?Namespace["']?\s*(?:[,}\n\r]|$)`)

// definesNamespace reports whether the files seem to contain a Namespace. It does not parse the files, because parsing would take
// seconds on each call.
func definesNamespace(files []installation.ManifestFile) bool {
	return slices.ContainsFunc(files, func(file installation.ManifestFile) bool { return namespaceKind.Match(file.Content) })
}

func isNoNamespace(object *unstructured.Unstructured) bool {
	return object.GetKind() != "Namespace" || object.GetAPIVersion() != "v1"
}

// identity returns an HMAC of the inputs that determine a part's content. Without the key, nobody can use the HMAC to test
// guesses of secret values.
func identity(key, inputs []byte) string {
	hash := hmac.New(sha256.New, key)
	_, _ = hash.Write([]byte(contentVersion + "\n"))
	_, _ = hash.Write(inputs)

	return hex.EncodeToString(hash.Sum(nil)[:contentDigits])
}

// pack returns the archive of a part. Repeated calls return the same bytes.
func (p part) pack(ctx context.Context, key []byte) ([]byte, error) {
	objects, err := p.render(ctx)
	if err != nil {
		return nil, err
	}

	if len(objects) == 0 {
		objects = []*unstructured.Unstructured{p.placeholder()}
	}

	lines := &bytes.Buffer{}
	encoder := json.NewEncoder(lines)

	for _, object := range objects {
		if err := encoder.Encode(object.Object); err != nil {
			return nil, fmt.Errorf("encoding an object: %w", err)
		}
	}

	masked, err := json.Marshal(slices.DeleteFunc(slices.Clone(p.masked), func(text string) bool { return text == "" }))
	if err != nil {
		return nil, fmt.Errorf("encoding the values to mask: %w", err)
	}

	return archive([]file{{fileObjects, lines.Bytes()}, {fileKey, key}, {fileMasked, masked}})
}

// placeholder returns a ConfigMap for a part without objects, because the plain+v0 format requires at least one object. A component may
// contain only Namespaces, which are in the first part, or nothing. The first part has no objects if definesNamespace was wrong.
func (p part) placeholder() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	object.SetName("environment-broker-" + cmp.Or(p.name, "namespaces"))
	object.SetNamespace(p.namespace)

	return object
}

type file struct {
	name    string
	content []byte
}

// archive returns a tar.gz with the files.
func archive(files []file) ([]byte, error) {
	packed := &bytes.Buffer{}
	zipped := gzip.NewWriter(packed)
	archive := tar.NewWriter(zipped)

	for _, file := range files {
		header := &tar.Header{Name: file.name, Size: int64(len(file.content)), Mode: 0o600, ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", file.name, err)
		}

		if _, err := archive.Write(file.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", file.name, err)
		}
	}

	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return nil, fmt.Errorf("packing a component: %w", err)
	}

	return packed.Bytes(), nil
}

// withoutBundle removes references to the Bundle from a message of the bundle provisioner, because users know only components.
func withoutBundle(message, bundle string) string {
	for _, text := range []string{" cannot be installed: ", " cannot be unpacked: "} {
		message = strings.TrimPrefix(message, "Bundle "+bundle+text)
	}

	return strings.TrimPrefix(message, "bundle: ")
}
