package floor

import (
	"fmt"
	"os"
	"strconv"
)

// The variables that the program reads.
const (
	addressVariable = "FLOOR_ADDRESS"
	dsnVariable     = "FLOOR_DSN"
	usersVariable   = "FLOOR_USERS"
	fixedVariable   = "FLOOR_FIXED_BYTES"
)

// Config says what to serve.
type Config struct {
	Address string
	// DSN is the database.
	DSN string
	// Users is as in the broker's APP_AUTH_BASIC_USERS.
	Users string
	// FixedBytes is how long the answer is that is always the same.
	FixedBytes int
}

// Environment is the configuration as the program reads it.
func (c Config) Environment() []string {
	return []string{
		addressVariable + "=" + c.Address, dsnVariable + "=" + c.DSN, usersVariable + "=" + c.Users,
		fixedVariable + "=" + strconv.Itoa(c.FixedBytes),
	}
}

// ConfigFromEnvironment reads what Environment made.
func ConfigFromEnvironment() (Config, error) {
	fixed, err := strconv.Atoi(os.Getenv(fixedVariable))
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", fixedVariable, err)
	}

	return Config{
		Address: os.Getenv(addressVariable), DSN: os.Getenv(dsnVariable), Users: os.Getenv(usersVariable), FixedBytes: fixed,
	}, nil
}
