// Package installer implements installation.Installer. It converts a plan to the content of a runtime, with values in place of
// the placeholders, and installs it with package internal/clients/applier, whose documentation describes the guarantees.
package installer
