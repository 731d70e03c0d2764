// Package installer implements installation.Installer. It converts a plan to an applier.Content, with values in place of the
// placeholders. Package internal/clients/applier installs this content, and its documentation describes the guarantees.
package installer
