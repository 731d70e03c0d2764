// Package auth builds what stands between a service and its clients: TLS, who they are, what they may do, and how often.
package auth

// Config is how clients come in, beside the users of APP_AUTH_BASIC_USERS.
type Config struct {
	UsersFile        string  `env:"AUTH_BASIC_USERS_FILE"  help:"file with further users, one user:password[:role+role] a line; it is read anew when it changes"`
	OIDC             OIDC    `envPrefix:"AUTH_OIDC_"`
	CertificateRoles string  `env:"AUTH_CERTIFICATE_ROLES" help:"role=part:value,… for the certificates of clients; parts are cn, o, ou, dns, email, uri"`
	TLS              TLS     `envPrefix:"TLS_"`
	RateLimit        float64 `env:"RATE_LIMIT"             help:"requests a second that each client may send to a replica; 0 is no limit"`
	RateLimitBurst   int     `env:"RATE_LIMIT_BURST"       help:"how many of them may come at once"`
}

// OIDC is an OpenID Connect issuer whose tokens are accepted.
type OIDC struct {
	IssuerURL  string   `env:"ISSUER_URL" help:"issuer of the tokens that are accepted; empty for none"`
	Audience   []string `env:"AUDIENCE"   help:"audiences of which a token has to name one, comma-separated"`
	Roles      string   `env:"ROLES"      help:"role=claim:value,… by which tokens give roles; the claim scope stands for scope and scp"`
	NameClaim  string   `env:"NAME_CLAIM" help:"claim that holds the name of whoever has the token"`
	Algorithms []string `env:"ALGORITHMS" help:"algorithms by which tokens may be signed, comma-separated"`
	CAFile     string   `env:"CA_FILE"    help:"authorities of the issuer's certificate; empty for those of the system"`
}

// TLS names the files of the server's side.
type TLS struct {
	CertFile     string `env:"CERT_FILE"      help:"certificate of the server, with intermediate ones behind it; empty for no TLS. It is read anew when it changes"`
	KeyFile      string `env:"KEY_FILE"       help:"key of the certificate"`
	ClientCAFile string `env:"CLIENT_CA_FILE" help:"authorities of the certificates of clients; empty for not asking for any"`
}

// Default returns the defaults: nothing beside the users, and no limit.
func Default() Config {
	return Config{
		OIDC: OIDC{
			Roles:     "osb=scope:broker:write,viewer=groups:runtimeViewer,operator=groups:runtimeOperator,admin=groups:runtimeAdmin",
			NameClaim: "sub", Algorithms: []string{"RS256", "ES256"},
		},
		RateLimitBurst: 100,
	}
}
