package ebctl

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// configuration is the content of the configuration file: either one broker, or several brokers in contexts. Each broker can have
// a Provisioner.
type configuration struct {
	// entry is the broker to use if no context is selected.
	entry `json:",inline"`

	// Context is the name of the selected context, or empty.
	Context string `json:"context,omitempty"`
	// Contexts contains the brokers, keyed by context name.
	Contexts map[string]entry `json:"contexts,omitempty"`
}

// entry is a broker and, for 'ebctl provisioner', its Provisioner.
type entry struct {
	login `json:",inline"`

	Provisioner login `json:"provisioner,omitzero"`
}

// login is the stored address of a service with the credentials of a user. ebctl stores these credentials only in the
// configuration file.
type login struct {
	Address  string        `json:"address,omitempty"`
	Username string        `json:"username,omitempty"`
	Password secret.Stored `json:"password,omitempty"`
	Token    secret.Stored `json:"token,omitempty"`
}

// settings returns the settings of the named context. If name is empty, it returns the settings of the selected context or, if no
// context is selected, the settings outside all contexts. It fails if the context does not exist.
func (c configuration) settings(name string, provisioner bool) (Settings, error) {
	found := c.entry

	if name = cmp.Or(name, c.Context); name != "" {
		var exists bool
		if found, exists = c.Contexts[name]; !exists {
			return Settings{}, c.unknown(name)
		}
	}

	chosen := found.login
	if provisioner {
		chosen = found.Provisioner
	}

	return Settings{
		Address: chosen.Address, Username: chosen.Username, Password: chosen.Password.Reveal(), Token: chosen.Token.Reveal(),
	}, nil
}

// names returns the names of the contexts in alphabetical order.
func (c configuration) names() []string { return slices.Sorted(maps.Keys(c.Contexts)) }

// unknown returns the error for a context that does not exist.
func (c configuration) unknown(name string) error {
	if len(c.Contexts) == 0 {
		return fmt.Errorf("context %q does not exist; 'ebctl login' creates contexts", name)
	}

	return fmt.Errorf("context %q does not exist; the configuration file has %s%s",
		name, strings.Join(c.names(), ", "), failure.Suggestion(name, c.names()))
}

// configuration reads the configuration file. If the user has set the path of the file, the file must exist. The default file may
// be missing.
func (s Sources) configuration() (configuration, error) {
	path, named := s.file()
	if path == "" {
		return configuration{}, nil
	}

	read, err := readConfiguration(path)
	if !named && errors.Is(err, fs.ErrNotExist) {
		return configuration{}, nil
	}

	return read, err
}

// file returns the path of the configuration file, and whether the user has set it with the flag or the variable.
func (s Sources) file() (path string, named bool) {
	if named := cmp.Or(s.ConfigFile, s.Environment(ConfigVariable)); named != "" {
		return named, true
	}

	return s.defaultFile(), false
}

// defaultFile returns the path of the default file according to the XDG Base Directory Specification, or an empty path if the
// user has no home directory.
func (s Sources) defaultFile() string {
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

func readConfiguration(path string) (configuration, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return configuration{}, fmt.Errorf("reading the configuration file: %w", err)
	}

	read, err := parseConfiguration(content)

	return read, failure.While(err, "reading the configuration file %s", path)
}

// parseConfiguration decodes a configuration file. Unknown fields are an error, because they are usually typing errors.
func parseConfiguration(content []byte) (configuration, error) {
	var read configuration
	if err := yaml.UnmarshalStrict(content, &read); err != nil {
		return configuration{}, err
	}

	return read, nil
}

// change reads the configuration file, calls apply, and replaces the file with the result. The new file is readable only by its
// owner. A missing file is treated as empty. Comments in the file are lost.
func (s Sources) change(apply func(*configuration) error) error {
	path, _ := s.file()
	if path == "" {
		return errors.New("cannot determine the path of the configuration file: set HOME, XDG_CONFIG_HOME or " + ConfigVariable)
	}

	changed, err := readConfiguration(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	if err := apply(&changed); err != nil {
		return err
	}

	encoded, err := yaml.Marshal(changed)
	if err != nil {
		return fmt.Errorf("encoding the configuration file: %w", err)
	}

	return failure.While(atomicfile.Write(path, encoded), "writing the configuration file")
}
