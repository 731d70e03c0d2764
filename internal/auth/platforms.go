package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// DefaultPlatform is the platform of all clients with RoleOSB if no platforms are configured. It is also the owner of the
// instances that were created before platforms were introduced: a migration assigned them to it.
const DefaultPlatform = "default"

// Platform is a client of the Open Service Broker API with its credentials. It reaches only the instances that it owns or that are
// shared with it.
type Platform struct {
	// Name is a DNS label, such as cf-eu10.
	Name string `json:"name"`
	// Users, Claims and Certificates identify the clients of the platform: users with passwords by their names, tokens by the values
	// of claims, and client certificates by the values of attributes. One matching value is enough. An entry for the scope claim
	// also covers scp.
	Users        []string            `json:"users,omitempty"`
	Claims       map[string][]string `json:"claims,omitempty"`
	Certificates map[string][]string `json:"certificates,omitempty"`
	// Regions are the platform regions that may appear in the URL paths of the platform's requests. If the list is empty, regions
	// are not checked.
	Regions []string `json:"regions,omitempty"`
	// Tenants are the IDs of the global accounts whose instances the platform manages. If the list is empty, accounts are not checked.
	Tenants []string `json:"tenants,omitempty"`
}

// AllowsRegion reports whether the platform may send requests for the given platform region.
func (p Platform) AllowsRegion(region string) bool {
	return len(p.Regions) == 0 || slices.Contains(p.Regions, region)
}

// AllowsTenant reports whether the platform may manage instances of the given global account.
func (p Platform) AllowsTenant(account string) bool {
	return len(p.Tenants) == 0 || slices.Contains(p.Tenants, account)
}

// has reports whether the client belongs to the platform.
func (p Platform) has(identity Identity) bool {
	switch identity.Means {
	case ByPassword:
		return slices.Contains(p.Users, identity.Name)
	case ByToken:
		return matchesAny(p.Claims, identity.Attributes)
	case ByCertificate:
		return matchesAny(p.Certificates, identity.Attributes)
	default:
		return false
	}
}

// matchesAny reports whether at least one attribute has a value that values lists under the attribute's name.
func matchesAny(values, attributes map[string][]string) bool {
	for name, accepted := range values {
		if slices.ContainsFunc(attributes[name], func(value string) bool { return slices.Contains(accepted, value) }) {
			return true
		}
	}

	return false
}

// Platforms are the configured platforms. The zero value means that no platforms are configured: all clients belong to DefaultPlatform.
type Platforms struct {
	configured []Platform
}

// ParsePlatforms parses a YAML file with the list "platforms". The error lists the mistakes of all platforms. A file without platforms is an
// error: an editor may have truncated the file before writing it, and an empty list would assign all clients to DefaultPlatform.
func ParsePlatforms(content []byte) (Platforms, error) {
	var file struct {
		Platforms []Platform `json:"platforms"`
	}

	if err := yaml.UnmarshalStrict(content, &file); err != nil {
		return Platforms{}, fmt.Errorf("decoding the platforms: %w", err)
	}

	if len(file.Platforms) == 0 {
		return Platforms{}, errors.New("the file has no platforms")
	}

	var (
		errs  []error
		owner = map[string]string{}
	)

	for i, platform := range file.Platforms {
		if wrong := validation.IsDNS1123Label(platform.Name); len(wrong) > 0 {
			errs = append(errs, fmt.Errorf("platform %d: the name %q: %s", i+1, platform.Name, wrong[0]))

			continue
		}

		for _, unique := range platform.unique() {
			if other, taken := owner[unique]; taken {
				errs = append(errs, fmt.Errorf("platform %s: the %s is already used by platform %s", platform.Name, unique, other))
			}

			owner[unique] = platform.Name
		}

		errs = append(errs, platform.check())
	}

	return Platforms{file.Platforms}, errors.Join(errs...)
}

// unique returns one string for each value that must not occur in two platforms: the name, the users, and the values of claims
// and certificate attributes. Error messages quote these strings.
func (p Platform) unique() []string {
	described := []string{"name " + p.Name}
	for _, user := range p.Users {
		described = append(described, "user "+user)
	}

	for kind, values := range map[string]map[string][]string{"claim": p.Claims, "certificate attribute": p.Certificates} {
		for name, accepted := range values {
			for _, value := range accepted {
				described = append(described, fmt.Sprintf("%s %s:%s", kind, name, value))
			}
		}
	}

	return described
}

// check returns an error for empty values and for attributes that certificates do not have.
func (p Platform) check() error {
	var errs []error

	values := slices.Concat(p.Users, p.Regions, p.Tenants)

	for _, accepted := range p.Claims {
		values = append(values, accepted...)
	}

	for name, accepted := range p.Certificates {
		values = append(values, accepted...)

		if !slices.Contains(certificateAttributes(), name) {
			errs = append(errs, fmt.Errorf("platform %s: clients cannot be identified by the certificate attribute %q: use one of %s",
				p.Name, name, strings.Join(certificateAttributes(), ", ")))
		}
	}

	if slices.Contains(values, "") {
		errs = append(errs, fmt.Errorf("platform %s: users, claims, certificates, regions and tenants must not contain empty values", p.Name))
	}

	return errors.Join(errs...)
}

// Configured reports whether platforms are configured.
func (p Platforms) Configured() bool { return len(p.configured) > 0 }

// List returns the configured platforms in the order of the file, or DefaultPlatform if none are configured.
func (p Platforms) List() []Platform {
	if !p.Configured() {
		return []Platform{{Name: DefaultPlatform}}
	}

	return p.configured
}

// Find returns the platform with the given name, or false if there is none.
func (p Platforms) Find(name string) (Platform, bool) {
	for _, platform := range p.List() {
		if platform.Name == name {
			return platform, true
		}
	}

	return Platform{}, false
}

// of returns the platform of the client. It returns false if the client belongs to no platform, or to several, because the owner
// of a new instance would be ambiguous.
func (p Platforms) of(identity Identity) (Platform, bool) {
	if !p.Configured() {
		return Platform{Name: DefaultPlatform}, true
	}

	var found []Platform

	for _, platform := range p.configured {
		if platform.has(identity) {
			found = append(found, platform)
		}
	}

	if len(found) != 1 {
		return Platform{}, false
	}

	return found[0], true
}

type platformKey struct{}

// PlatformOf returns the platform that RequirePlatform stored in the context. If there is none, it returns the zero Platform,
// which owns no instance.
func PlatformOf(ctx context.Context) Platform {
	platform, _ := ctx.Value(platformKey{}).(Platform)

	return platform
}

// textNoPlatform is the description of the 403 response to clients that belong to no platform or to several.
const textNoPlatform = "The user does not belong to exactly one of the configured platforms."

// RequirePlatform returns a middleware that accepts only clients that belong to exactly one platform. It stores the platform in
// the request context, for PlatformOf. Other clients get 403. It calls platforms for each request, because the file can be
// reloaded. The middleware must run inside Require.
func (a *Authorizer) RequirePlatform(platforms func() Platforms) httpserver.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			platform, found := platforms().of(FromContext(r.Context()))
			if !found {
				a.refuse(w, r, Forbidden, &httpserver.Refusal{Status: http.StatusForbidden, Code: "Forbidden", Description: textNoPlatform})

				return
			}

			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), platformKey{}, platform)))
		})
	}
}
