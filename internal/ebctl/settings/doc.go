// Package settings tells which broker ebctl talks to and as whom. Flags win over the environment, the environment over the
// configuration file, the file over the defaults.
package settings
