// Package installer implements installation.Installer. It converts a plan to the content of a runtime, with values in place of the
// placeholders, and lets package internal/clients/applier install it. The documentation of the applier describes the guarantees.
package installer
