package catalog

import (
	"cmp"
	"net/url"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// oidcParameters is the parameter oidc: its fields, or a list of one object with the same fields.
type oidcParameters struct {
	environment.OIDC

	List []environment.OIDC `json:"list"`
}

// NewOIDC returns the default configuration for an issuer: names from the claim sub without a prefix, groups
// from the claim groups, RS256.
func NewOIDC(issuerURL, clientID string) *environment.OIDC {
	return &environment.OIDC{
		IssuerURL: issuerURL, ClientID: clientID,
		GroupsClaim: "groups", UsernameClaim: "sub", UsernamePrefix: "-", SigningAlgs: []string{"RS256"},
	}
}

// over merges the given fields into the present configuration, or into the defaults if it is nil. Without given
// fields it returns the present configuration.
func (given oidcParameters) over(present *environment.OIDC) *environment.OIDC {
	fields := given.OIDC
	if len(given.List) > 0 {
		fields = given.List[0]
	}

	if fields.ClientID == "" && fields.IssuerURL == "" && fields.GroupsClaim == "" && fields.UsernameClaim == "" &&
		fields.UsernamePrefix == "" && len(fields.SigningAlgs) == 0 {
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

// check rejects a list together with single fields.
func (given oidcParameters) check(wrong *Violations) {
	wrong.unless(len(given.List) == 0 || given.ClientID == "" && given.IssuerURL == "", "oidc", ruleOIDC,
		"it has both a list and single fields: use one of the two")
}

// checkOIDC checks that an API server accepts the configuration: it refuses to start with an issuer that does
// not use https. No request is sent to the issuer.
func checkOIDC(wrong *Violations, oidc *environment.OIDC) {
	if oidc == nil {
		return
	}

	wrong.unless(oidc.ClientID != "", "oidc.clientID", ruleOIDC, "the client ID is missing")

	issuer, err := url.Parse(oidc.IssuerURL)
	fine := err == nil && issuer.Scheme == "https" && issuer.Hostname() != "" &&
		issuer.User == nil && issuer.RawQuery == "" && issuer.Fragment == ""
	wrong.unless(fine, "oidc.issuerURL", ruleOIDC, "it must look like https://issuer.example.com, without user, query and fragment")
}
