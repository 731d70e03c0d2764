package avs

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// Config configures the connection to AvS and the evaluations that the broker creates there. An empty API switches AvS off. The
// environment variables have the same names as in the Kyma Environment Broker.
type Config struct {
	API      string        `env:"API_ENDPOINT"           help:"URL of the evaluations in the availability service (AvS), such as https://avs.example.com/api/v2/evaluationmetadata; empty turns the integration off"`
	TokenURL string        `env:"OAUTH_TOKEN_ENDPOINT"   help:"URL of the token endpoint of AvS"`
	ClientID string        `env:"OAUTH_CLIENT_ID"        help:"ID of the OAuth client"`
	Username string        `env:"OAUTH_USERNAME"         help:"user for AvS"`
	Password secret.String `env:"OAUTH_PASSWORD"         help:"password of the user"`
	GroupID  int64         `env:"GROUP_ID"               help:"group ID of the evaluations"`
	ParentID int64         `env:"PARENT_ID"              help:"ID of the parent evaluation"`
	Internal Tester        `envPrefix:"INTERNAL_TESTER_"`
	External Tester        `envPrefix:"EXTERNAL_TESTER_"`
	Trial    Trial         `envPrefix:"TRIAL_"`
	Tags     TagClasses    `envPrefix:""`
	Timeout  time.Duration `env:"TIMEOUT"                help:"timeout of one call"`
	Calls    int           `env:"CALLS"                  help:"maximum number of concurrent calls, per replica"`
}

// Tester contains the settings that apply either to all internal or to all external evaluations.
type Tester struct {
	Disabled bool     `env:"DISABLED"  help:"create no evaluations of this kind"`
	AccessID int64    `env:"ACCESS_ID" help:"tester access ID"`
	Service  string   `env:"SERVICE"   help:"name of the service in the evaluations"`
	Tags     []string `env:"TAGS"      help:"tags of the evaluations, as content:class ID:class name,…"`
}

// Trial contains the settings of internal evaluations for the plans trial and free. They apply only if all of them are set.
type Trial struct {
	AccessID int64 `env:"INTERNAL_TESTER_ACCESS_ID" help:"tester access ID for plans trial and free; unless this ID, APP_AVS_TRIAL_GROUP_ID and APP_AVS_TRIAL_PARENT_ID are all set, these plans use the settings of the other plans"`
	GroupID  int64 `env:"GROUP_ID"                  help:"ID of the group for plans trial and free"`
	ParentID int64 `env:"PARENT_ID"                 help:"ID of the parent evaluation for plans trial and free"`
}

// TagClasses are the classes of the tags that describe the cluster.
type TagClasses struct {
	Enabled   bool  `env:"ADDITIONAL_TAGS_ENABLED"          help:"tag internal evaluations with the name, the seed and the region of the cluster"`
	ShootName int64 `env:"GARDENER_SHOOT_NAME_TAG_CLASS_ID" help:"ID of the tag class for Shoot names"`
	SeedName  int64 `env:"GARDENER_SEED_NAME_TAG_CLASS_ID"  help:"ID of the tag class for seed names"`
	Region    int64 `env:"REGION_TAG_CLASS_ID"              help:"ID of the tag class for regions"`
}

// DefaultConfig returns the defaults, with AvS turned off.
func DefaultConfig() Config { return Config{Timeout: 30 * time.Second, Calls: 10} }

// Check reports all invalid settings in one error, which names their variables.
func (c Config) Check() error {
	if c.API == "" {
		return nil
	}

	_, internalErr := parseTags(c.Internal.Tags)
	_, externalErr := parseTags(c.External.Tags)

	return errors.Join(
		upstream.CheckURL("APP_AVS_API_ENDPOINT", c.API),
		upstream.CheckURL("APP_AVS_OAUTH_TOKEN_ENDPOINT", c.TokenURL),
		failure.Unless(c.ClientID != "" && c.Username != "" && c.Password != "",
			"APP_AVS_API_ENDPOINT: also set APP_AVS_OAUTH_CLIENT_ID, APP_AVS_OAUTH_USERNAME and APP_AVS_OAUTH_PASSWORD"),
		failure.While(internalErr, "APP_AVS_INTERNAL_TESTER_TAGS"),
		failure.While(externalErr, "APP_AVS_EXTERNAL_TESTER_TAGS"),
		failure.Unless(c.Calls > 0 && c.Timeout > 0, "APP_AVS_CALLS and APP_AVS_TIMEOUT: must be positive"),
	)
}

// parseTags parses tags of the form content:class ID:class name. The content, such as an address, may contain colons.
func parseTags(texts []string) ([]Tag, error) {
	var tags []Tag

	for _, text := range texts {
		rest, name, _ := cutLast(text)
		content, id, found := cutLast(rest)

		class, err := strconv.ParseInt(id, 10, 64)
		if !found || err != nil || content == "" {
			return nil, errors.New("a tag must have the form CONTENT:CLASS_ID:CLASS_NAME, such as production:12:stage")
		}

		tags = append(tags, Tag{Content: content, ClassID: class, ClassName: name})
	}

	return tags, nil
}

// cutLast splits the text at its last colon.
func cutLast(text string) (before, after string, found bool) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return text, "", false
	}

	return text[:at], text[at+1:], true
}
