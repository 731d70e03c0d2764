package ebctl

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// DefaultAddress is the broker's URL if no source sets one. It is the default address of the sandbox.
const DefaultAddress = "http://127.0.0.1:8080"

// Environment variables of ebctl. Flags take precedence over them.
const (
	AddressVariable  = "EBCTL_ADDRESS"
	UsernameVariable = "EBCTL_USERNAME"
	PasswordVariable = "EBCTL_PASSWORD"
	TokenVariable    = "EBCTL_TOKEN" //nolint:gosec // the name of a variable, not a token
	ConfigVariable   = "EBCTL_CONFIG"
	ContextVariable  = "EBCTL_CONTEXT"
)

// Settings contains the address of a broker and the credentials of a user. Empty fields are not set.
type Settings struct {
	// Address is the broker's URL without a trailing slash.
	Address  string
	Username string
	Password secret.String
	// Token is a token from an OpenID Connect issuer. It replaces user and password.
	Token secret.String
}

// Sources contains the sources of settings in order of precedence: flags, environment, file.
type Sources struct {
	Flags Settings
	// ConfigFile is the value of the flag --config, or empty.
	ConfigFile string
	// Context is the value of the flag --context, or empty.
	Context string
	// Environment returns the value of an environment variable, or an empty string.
	Environment func(name string) string
}

// Resolve merges all sources field by field. Only the address has a default. Resolve fails if the address is invalid or the
// configuration file cannot be read.
func Resolve(sources Sources) (Settings, error) {
	configuration, err := sources.configuration()
	if err != nil {
		return Settings{}, err
	}

	file, err := configuration.settings(sources.contextName())
	if err != nil {
		return Settings{}, err
	}

	merged := sources.given().or(file).or(Settings{Address: DefaultAddress})
	merged.Address, err = baseURL(merged.Address)

	return merged, err
}

// contextName returns the context that the flag or the environment selects, or an empty string.
func (s Sources) contextName() string { return cmp.Or(s.Context, s.Environment(ContextVariable)) }

// given returns the settings from the flags and the environment.
func (s Sources) given() Settings {
	return s.Flags.or(Settings{
		Address:  s.Environment(AddressVariable),
		Username: s.Environment(UsernameVariable),
		Password: secret.String(s.Environment(PasswordVariable)),
		Token:    secret.String(s.Environment(TokenVariable)),
	})
}

// or returns the settings, with fields that are not set taken from other.
func (s Settings) or(other Settings) Settings {
	return Settings{
		Address:  cmp.Or(s.Address, other.Address),
		Username: cmp.Or(s.Username, other.Username),
		Password: cmp.Or(s.Password, other.Password),
		Token:    cmp.Or(s.Token, other.Token),
	}
}

// baseURL completes and validates an address. It returns the broker's URL without a trailing slash.
func baseURL(address string) (string, error) {
	complete := strings.TrimRight(withScheme(address), "/")

	return complete, checkAddress(complete)
}

// withScheme adds a scheme to an address such as broker.example.com or 127.0.0.1:8080. The scheme is http for this machine and
// https for all others, so that credentials are never sent unencrypted to another machine unless the user has specified http.
func withScheme(address string) string {
	if strings.Contains(address, "://") {
		return address
	}

	host, _, _ := strings.Cut(address, "/")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}

	if ip := net.ParseIP(strings.Trim(host, "[]")); host == "localhost" || ip.IsLoopback() {
		return "http://" + address
	}

	return "https://" + address
}

// checkAddress rejects addresses that are not base URLs. The error does not quote an address that may contain a password.
func checkAddress(address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return errors.New("the broker's address is not a URL")
	}

	if parsed.User != nil {
		return fmt.Errorf("the broker's address contains credentials: set %s and %s instead", UsernameVariable, PasswordVariable)
	}

	if (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || parsed.RawQuery != "" {
		return fmt.Errorf("the broker's address %q does not have the form http(s)://host[:port][/path]", address)
	}

	return nil
}
