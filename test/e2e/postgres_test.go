package e2e

import (
	"strconv"

	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

// postgresSettings are the settings of a service on the database.
func postgresSettings(database storage.Config, service string) replica.Database {
	settings := replica.DefaultConfig(service, storage.DriverPostgres).Database
	settings.User, settings.Password = database.User, database.Password
	settings.Host, settings.Port = database.Host, strconv.Itoa(database.Port)
	settings.Name, settings.SSLMode = database.Name, database.SSLMode
	settings.SecretKeys = secret.NewKey("test")

	return settings
}
