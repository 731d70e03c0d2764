package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// file reads the configuration file. One that was named has to exist; the default one may be missing.
func (s Sources) file() (Settings, error) {
	if named := cmp.Or(s.ConfigFile, s.Environment(ConfigVariable)); named != "" {
		return read(named)
	}

	usual := s.usualFile()
	if usual == "" {
		return Settings{}, nil
	}

	settings, err := read(usual)
	if errors.Is(err, fs.ErrNotExist) {
		return Settings{}, nil
	}

	return settings, err
}

// usualFile is where the configuration file stands unless another one is named, or empty for a user without a home.
func (s Sources) usualFile() string {
	const (
		folder = "ebctl"
		name   = "config.yaml"
	)

	if configuration := s.Environment("XDG_CONFIG_HOME"); configuration != "" {
		return filepath.Join(configuration, folder, name)
	}

	if home := s.Environment("HOME"); home != "" {
		return filepath.Join(home, ".config", folder, name)
	}

	return ""
}

func read(path string) (Settings, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Settings{}, fmt.Errorf("reading the configuration file: %w", err)
	}

	var settings Settings
	if err := yaml.UnmarshalStrict(content, &settings); err != nil {
		return Settings{}, fmt.Errorf("reading the configuration file %s: %w", path, err)
	}

	return settings, nil
}
