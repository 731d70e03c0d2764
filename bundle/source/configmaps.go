package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
)

// configMapSource joins the files from several ConfigMaps.
type configMapSource struct {
	options Options
	objects objects
}

// Fetch implements Fetcher. The resolved source is not pinned, because ConfigMaps have no digest. Instead, the controller compares
// the digest of the content.
func (s *configMapSource) Fetch(ctx context.Context, request Request, into *os.Root) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()

	tree := archive.NewTree(into, s.options.Limits)
	owners := map[string]string{}

	for _, source := range request.Source.ConfigMaps {
		if err := s.add(ctx, tree, source, owners); err != nil {
			return Result{}, errors.Join(unpacked(err, "the ConfigMap "+source.ConfigMap.Name), tree.Close())
		}
	}

	return Result{Resolved: request.Source}, tree.Close()
}

// add writes each key of a ConfigMap to a file. owners maps the files written so far to their ConfigMaps.
func (s *configMapSource) add(ctx context.Context, tree *archive.Tree, source v1alpha1.ConfigMapSource, owners map[string]string) error {
	folder := path.Clean(source.Path)
	if source.Path != "" && !fs.ValidPath(folder) {
		return terminal("source.configMaps: the path %q leaves the bundle: write a relative path without ..", source.Path)
	}

	configMap := &corev1.ConfigMap{}
	if err := s.objects.get(ctx, "ConfigMap", source.ConfigMap.Name, configMap); err != nil {
		return err
	}

	files := maps.Clone(configMap.BinaryData)
	if files == nil {
		files = map[string][]byte{}
	}

	for key, text := range configMap.Data {
		files[key] = []byte(text)
	}

	for _, key := range slices.Sorted(maps.Keys(files)) {
		name := path.Join(folder, key)
		if owner, taken := owners[name]; taken {
			return terminal("the ConfigMaps %s and %s both contain %s: give one of them another path", owner, source.ConfigMap.Name, name)
		}

		owners[name] = source.ConfigMap.Name

		if err := tree.File(name, int64(len(files[key])), bytes.NewReader(files[key])); err != nil {
			return fmt.Errorf("the key %s: %w", key, err)
		}
	}

	return nil
}
