package catalog

import (
	"net/url"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// oidcParameters is what a request says of OpenID Connect: the fields, or a list with one entry that has them.
type oidcParameters struct {
	environment.OIDC

	List []environment.OIDC `json:"list"`
}

// signingAlgs are the algorithms of tokens that Kubernetes checks.
func signingAlgs() []string {
	return []string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"}
}

// NewOIDC returns the usual way to read the tokens of an issuer.
func NewOIDC(issuerURL, clientID string) *environment.OIDC {
	return &environment.OIDC{
		IssuerURL: issuerURL, ClientID: clientID,
		GroupsClaim: "groups", UsernameClaim: "sub", UsernamePrefix: "-", SigningAlgs: []string{"RS256"},
	}
}

// over lays what is given over what there is, field by field. When nothing is given, what there is stays; when there is nothing, the
// defaults are beneath.
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

	set(&merged.ClientID, &fields.ClientID)
	set(&merged.IssuerURL, &fields.IssuerURL)
	set(&merged.GroupsClaim, &fields.GroupsClaim)
	set(&merged.UsernameClaim, &fields.UsernameClaim)
	set(&merged.UsernamePrefix, &fields.UsernamePrefix)

	if len(fields.SigningAlgs) > 0 {
		merged.SigningAlgs = fields.SigningAlgs
	}

	return &merged
}

// check finds what is said twice.
func (given oidcParameters) check(wrong *violations) {
	wrong.unless(len(given.List) == 0 || given.ClientID == "" && given.IssuerURL == "", "oidc", ruleOIDC,
		"it has a list and fields beside it: use one of the two")
}

// oidcSchema takes the fields, and the list that later brokers have in their place.
func oidcSchema(*Plan) map[string]any {
	text := func(description string) map[string]any { return property("string", description, map[string]any{}) }
	fields := func() map[string]any {
		return map[string]any{
			"clientID":       text("The client id for which tokens are issued."),
			"issuerURL":      text("The address of the issuer, with https."),
			"groupsClaim":    text("The claim that holds a user's groups; groups unless told."),
			"usernameClaim":  text("The claim that holds a user's name; sub unless told."),
			"usernamePrefix": text("What is put before a user's name; - for nothing, which it is unless told."),
			"signingAlgs": property("array", "The algorithms by which tokens may be signed; RS256 unless told.", map[string]any{
				"items": map[string]any{"type": "string", "enum": signingAlgs()}, "uniqueItems": true,
			}),
		}
	}
	order := []string{"clientID", "issuerURL", "groupsClaim", "usernameClaim", "usernamePrefix", "signingAlgs"}

	properties := fields()
	properties["list"] = property("array", "The same as a list; a cluster takes one issuer.", map[string]any{
		"minItems": 1, "maxItems": 1,
		"items": property("object", "An issuer.", map[string]any{
			"properties": fields(), "additionalProperties": false, "required": []string{"clientID", "issuerURL"}, "_controlsOrder": order,
		}),
	})

	return property("object", "How users log in to the cluster by OpenID Connect.", map[string]any{
		"properties": properties, "additionalProperties": false, "_controlsOrder": append(order, "list"),
	})
}

// checkOIDC finds what would keep the cluster from checking tokens.
func checkOIDC(wrong *violations, oidc *environment.OIDC) {
	if oidc == nil {
		return
	}

	wrong.unless(oidc.ClientID != "", "oidc.clientID", ruleOIDC, "it is missing")

	issuer, err := url.Parse(oidc.IssuerURL)
	fine := err == nil && issuer.Scheme == "https" && issuer.Hostname() != "" &&
		issuer.User == nil && issuer.RawQuery == "" && issuer.Fragment == ""
	wrong.unless(fine, "oidc.issuerURL", ruleOIDC, "it has to be like https://issuer.example.com, without user, query and fragment")
}
