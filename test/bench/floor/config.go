package floor

import (
	"encoding/json"
	"fmt"
	"os"
)

// variable is the environment variable that passes the configuration to the program, as JSON.
const variable = "FLOOR_CONFIG"

// Config is the configuration of the floors.
type Config struct {
	Address string `json:"address"`
	// DSN is the data source name of the database, for lib/pq.
	DSN string `json:"dsn"`
	// Users has the format of the broker's APP_AUTH_BASIC_USERS.
	Users string `json:"users"`
	// FixedBytes is the length of the constant response, the floor of the catalog.
	FixedBytes int `json:"fixedBytes"`
}

// Environment returns the environment of a program that calls Run.
func (c Config) Environment() []string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers always encode
	}

	return []string{variable + "=" + string(text)}
}

// configFromEnvironment is the inverse of Environment.
func configFromEnvironment() (Config, error) {
	var config Config
	if err := json.Unmarshal([]byte(os.Getenv(variable)), &config); err != nil {
		return Config{}, fmt.Errorf("reading %s: %w", variable, err)
	}

	return config, nil
}
