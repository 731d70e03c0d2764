package settings

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// DefaultAddress is where a broker listens that was started without any configuration.
const DefaultAddress = "http://127.0.0.1:8080"

// The environment variables.
const (
	AddressVariable  = "EBCTL_ADDRESS"
	UsernameVariable = "EBCTL_USERNAME"
	PasswordVariable = "EBCTL_PASSWORD"
	TokenVariable    = "EBCTL_TOKEN" //nolint:gosec // the name of a variable, not a token
	ConfigVariable   = "EBCTL_CONFIG"
)

// Settings name a broker and a user of it. As a source of settings, an empty field says nothing.
type Settings struct {
	// Address is the broker's URL, without a slash at its end.
	Address  string        `json:"address"`
	Username string        `json:"username"`
	Password secret.String `json:"password"`
	// Token is one of an OpenID Connect issuer. It is sent in place of user and password.
	Token secret.String `json:"token"`
}

// Sources are where settings come from.
type Sources struct {
	// Flags has what the command line says.
	Flags Settings
	// ConfigFile is the file that the command line names, or empty.
	ConfigFile string
	// Environment returns the value of a variable, or nothing.
	Environment func(name string) string
}

// Resolve reads all sources and returns what they say together. There are no default credentials.
func Resolve(sources Sources) (Settings, error) {
	environment := Settings{
		Address:  sources.Environment(AddressVariable),
		Username: sources.Environment(UsernameVariable),
		Password: secret.String(sources.Environment(PasswordVariable)),
		Token:    secret.String(sources.Environment(TokenVariable)),
	}

	file, err := sources.file()
	if err != nil {
		return Settings{}, err
	}

	merged := Settings{
		Address:  cmp.Or(sources.Flags.Address, environment.Address, file.Address, DefaultAddress),
		Username: cmp.Or(sources.Flags.Username, environment.Username, file.Username),
		Password: cmp.Or(sources.Flags.Password, environment.Password, file.Password),
		Token:    cmp.Or(sources.Flags.Token, environment.Token, file.Token),
	}

	merged.Address = strings.TrimRight(merged.Address, "/")
	if err := checkAddress(merged.Address); err != nil {
		return Settings{}, err
	}

	return merged, nil
}

// checkAddress never repeats the address in an error before it knows that no password is in it.
func checkAddress(address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return errors.New("the broker's address is no URL")
	}

	if parsed.User != nil {
		return fmt.Errorf("the broker's address holds credentials: give them with %s and %s", UsernameVariable, PasswordVariable)
	}

	if (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || parsed.RawQuery != "" {
		return fmt.Errorf("the broker's address %q is not of the form http(s)://host[:port][/path]", address)
	}

	return nil
}
