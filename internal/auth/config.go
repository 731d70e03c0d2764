package auth

// Config sets how clients authenticate, besides the users of APP_AUTH_BASIC_USERS, and how many requests they may send.
type Config struct {
	UsersFile        string  `env:"AUTH_BASIC_USERS_FILE"  help:"file with further users, one user:password[:role+role] per line; it is read again when it changes"`
	OIDC             OIDC    `envPrefix:"AUTH_OIDC_"`
	CertificateRoles string  `env:"AUTH_CERTIFICATE_ROLES" help:"role=attribute:value,… for client certificates; attributes are cn, o, ou, dns, email and uri"`
	TLS              TLS     `envPrefix:"TLS_"`
	RateLimit        float64 `env:"RATE_LIMIT"             help:"requests per second that a replica accepts from each client; 0 means no limit"`
	RateLimitBurst   int     `env:"RATE_LIMIT_BURST"       help:"requests that each client may send at once"`
}

// OIDC names the OpenID Connect issuer whose tokens are accepted.
type OIDC struct {
	IssuerURL  string   `env:"ISSUER_URL" help:"issuer of accepted tokens; empty for none"`
	Audience   []string `env:"AUDIENCE"   help:"accepted audiences, comma-separated; a token must name one"`
	Roles      string   `env:"ROLES"      help:"role=claim:value,… that grant roles to tokens; the claim scope stands for scope and scp"`
	NameClaim  string   `env:"NAME_CLAIM" help:"claim that holds the name of the client"`
	Algorithms []string `env:"ALGORITHMS" help:"accepted signature algorithms, comma-separated"`
	CAFile     string   `env:"CA_FILE"    help:"file with the authorities of the issuer's certificate; empty for those of the system"`
}

// TLS names the certificate files of the server.
type TLS struct {
	CertFile     string `env:"CERT_FILE"      help:"file with the certificate of the server and its intermediates; empty for plain HTTP. It is read again when it changes"`
	KeyFile      string `env:"KEY_FILE"       help:"file with the key of the certificate"`
	ClientCAFile string `env:"CLIENT_CA_FILE" help:"file with the authorities of client certificates; empty to accept none"`
}

// Default returns the defaults: no authentication besides the users, and no rate limit.
func Default() Config {
	return Config{
		OIDC: OIDC{
			Roles:     "osb=scope:broker:write,viewer=groups:runtimeViewer,operator=groups:runtimeOperator,admin=groups:runtimeAdmin",
			NameClaim: "sub", Algorithms: []string{"RS256", "ES256"},
		},
		RateLimitBurst: 100,
	}
}
