package ebctl

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// Default addresses of the services. They match the default ports of the sandbox.
const (
	DefaultAddress            = "http://127.0.0.1:8080"
	DefaultProvisionerAddress = "http://127.0.0.1:3000"
)

// Environment variables of ebctl. Flags take precedence over them. The variables for the Provisioner start with provisionerPrefix
// instead of prefix.
const (
	AddressVariable  = "EBCTL_ADDRESS"
	UsernameVariable = "EBCTL_USERNAME"
	PasswordVariable = "EBCTL_PASSWORD"
	TokenVariable    = "EBCTL_TOKEN" //nolint:gosec // the name of a variable, not a token
	ConfigVariable   = "EBCTL_CONFIG"
	ContextVariable  = "EBCTL_CONTEXT"

	prefix            = "EBCTL_"
	provisionerPrefix = "EBCTL_PROVISIONER_"
)

// variables returns the names of all environment variables of ebctl.
func variables() []string {
	names := []string{ConfigVariable, ContextVariable}

	for _, name := range []string{AddressVariable, UsernameVariable, PasswordVariable, TokenVariable} {
		for _, provisioner := range []bool{false, true} {
			names = append(names, Sources{Provisioner: provisioner}.variable(name))
		}
	}

	return names
}

// Settings contains the address of a service and the credentials of a user. Empty fields are not set.
type Settings struct {
	// Address is the service's URL without a trailing slash.
	Address  string
	Username string
	Password secret.String
	// Token is a token from an OpenID Connect issuer. It replaces user and password of the same source and of later ones.
	Token secret.String
}

// Sources contains the sources of settings in order of precedence: flags, environment, file.
type Sources struct {
	Flags Settings
	// ConfigFile is the value of the --config flag, or empty.
	ConfigFile string
	// Context is the value of the --context flag, or empty.
	Context string
	// Environment returns the value of an environment variable, or an empty string.
	Environment func(name string) string
	// Provisioner selects the settings for the Provisioner instead of those for the broker.
	Provisioner bool
}

// Resolve merges all sources field by field. Only the address has a default. If flags or the environment set a different address
// than the file, Resolve ignores the credentials in the file, so that they are never sent to another service. Resolve fails if
// the address is invalid or the configuration file cannot be read.
func Resolve(sources Sources) (Settings, error) {
	configuration, err := sources.configuration()
	if err != nil {
		return Settings{}, err
	}

	file, err := configuration.settings(sources.contextName(), sources.Provisioner)
	if err != nil {
		return Settings{}, err
	}

	given := sources.given()
	if given.Address != "" && file.Address != "" && !sameAddress(given.Address, file.Address) {
		file = Settings{}
	}

	merged := given.or(file)
	if name := cmp.Or(sources.contextName(), configuration.Context); merged.Address == "" && sources.Provisioner && name != "" {
		return Settings{}, fmt.Errorf("context %q has no Provisioner; 'ebctl provisioner login' adds one", name)
	}

	merged = merged.or(Settings{Address: sources.defaultAddress()})
	merged.Address, err = sources.baseURL(merged.Address)

	return merged, err
}

func (s Sources) defaultAddress() string {
	if s.Provisioner {
		return DefaultProvisionerAddress
	}

	return DefaultAddress
}

// variable returns the name of a variable for the selected service, such as EBCTL_PROVISIONER_ADDRESS for EBCTL_ADDRESS.
func (s Sources) variable(name string) string {
	if s.Provisioner {
		return provisionerPrefix + strings.TrimPrefix(name, prefix)
	}

	return name
}

// contextName returns the context that the flag or the environment variable selects. An empty string means that the file selects
// the context.
func (s Sources) contextName() string { return cmp.Or(s.Context, s.Environment(ContextVariable)) }

// given returns the settings from flags and environment variables, without the configuration file.
func (s Sources) given() Settings {
	return s.Flags.or(Settings{
		Address:  s.Environment(s.variable(AddressVariable)),
		Username: s.Environment(s.variable(UsernameVariable)),
		Password: secret.String(s.Environment(s.variable(PasswordVariable))),
		Token:    secret.String(s.Environment(s.variable(TokenVariable))),
	})
}

// or returns s with its empty fields filled from other. A user in s replaces a token in other, because requests with a token ignore
// the user.
func (s Settings) or(other Settings) Settings {
	if s.Username != "" {
		other.Token = ""
	}

	return Settings{
		Address:  cmp.Or(s.Address, other.Address),
		Username: cmp.Or(s.Username, other.Username),
		Password: cmp.Or(s.Password, other.Password),
		Token:    cmp.Or(s.Token, other.Token),
	}
}

// baseURL completes and validates an address. It returns the service's URL without a trailing slash.
func (s Sources) baseURL(address string) (string, error) {
	complete := completed(address)

	return complete, s.checkAddress(complete)
}

// completed adds a missing scheme to the address and removes trailing slashes.
func completed(address string) string { return strings.TrimRight(withScheme(address), "/") }

// sameAddress compares two addresses after completing them. It ignores the case of scheme and host.
func sameAddress(one, other string) bool {
	first, firstErr := url.Parse(completed(one))
	second, secondErr := url.Parse(completed(other))

	return firstErr == nil && secondErr == nil && strings.EqualFold(first.Scheme, second.Scheme) &&
		strings.EqualFold(first.Host, second.Host) && first.Path == second.Path
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
func (s Sources) checkAddress(address string) error {
	service := "broker"
	if s.Provisioner {
		service = "Provisioner"
	}

	parsed, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("the %s's address is not a URL", service)
	}

	if parsed.User != nil {
		return fmt.Errorf("the %s's address contains credentials: set %s and %s instead",
			service, s.variable(UsernameVariable), s.variable(PasswordVariable))
	}

	if (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || parsed.RawQuery != "" {
		return fmt.Errorf("the %s's address %q does not have the form http(s)://host[:port][/path]", service, address)
	}

	return nil
}
