package catalog

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// oidcParameters is the value of the oidc parameter. Users send either the fields themselves or a list with one object that has
// the same fields.
type oidcParameters struct {
	environment.OIDC

	List []environment.OIDC `json:"list"`
}

// NewOIDC returns the default configuration for an issuer: user names come from the sub claim, without a prefix, and groups come
// from the groups claim. The signing algorithm RS256 has no effect, because API servers accept all asymmetric algorithms.
func NewOIDC(issuerURL, clientID string) *environment.OIDC {
	return &environment.OIDC{
		IssuerURL: issuerURL, ClientID: clientID,
		GroupsClaim: "groups", UsernameClaim: "sub", UsernamePrefix: "-", SigningAlgs: []string{"RS256"},
	}
}

// mergeInto returns the present configuration, overwritten with the given fields. If present is nil, the fields
// overwrite the defaults of NewOIDC instead. If no fields are given, mergeInto returns present.
func (given oidcParameters) mergeInto(present *environment.OIDC) *environment.OIDC {
	fields := given.OIDC
	if len(given.List) > 0 {
		fields = given.List[0]
	}

	if blank(fields) {
		return present
	}

	merged := *NewOIDC("", "")
	if present != nil {
		merged = *present
	}

	merged.ClientID = cmp.Or(fields.ClientID, merged.ClientID)
	merged.IssuerURL = cmp.Or(fields.IssuerURL, merged.IssuerURL)
	merged.GroupsClaim = cmp.Or(fields.GroupsClaim, merged.GroupsClaim)
	merged.UsernameClaim = cmp.Or(fields.UsernameClaim, merged.UsernameClaim)
	merged.UsernamePrefix = cmp.Or(fields.UsernamePrefix, merged.UsernamePrefix)

	if len(fields.SigningAlgs) > 0 {
		merged.SigningAlgs = fields.SigningAlgs
	}

	return &merged
}

// blank reports whether no field has a value.
func blank(fields environment.OIDC) bool {
	return fields.ClientID == "" && fields.IssuerURL == "" && fields.GroupsClaim == "" && fields.UsernameClaim == "" &&
		fields.UsernamePrefix == "" && len(fields.SigningAlgs) == 0
}

// check rejects a list together with individual fields, which would have no effect.
func (given oidcParameters) check(violations *Violations) {
	violations.require(len(given.List) == 0 || blank(given.OIDC), paramOIDC, ruleOIDC,
		"must contain either a list or individual fields, not both")
}

// checkOIDC checks that the Provisioner and an API server would accept the configuration. For example, the issuer must use https,
// because the API server would otherwise not start. Empty queries and fragments are not allowed either. checkOIDC does not send
// requests to the issuer.
func checkOIDC(violations *Violations, oidc *environment.OIDC) {
	if oidc == nil {
		return
	}

	violations.require(oidc.ClientID != "", "oidc.clientID", ruleOIDC, "the client ID is missing")

	issuer, err := url.Parse(oidc.IssuerURL)
	ok := err == nil && issuer.Scheme == "https" && issuer.Hostname() != "" &&
		issuer.User == nil && !strings.ContainsAny(oidc.IssuerURL, "?#")
	violations.require(ok, "oidc.issuerURL", ruleOIDC, "must have the form https://issuer.example.com, without user, query or fragment")
}
