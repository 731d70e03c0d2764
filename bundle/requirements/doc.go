// Package requirements tests the ten requirements of the provisioner specification, one file each, on a real API server. Each
// test runs with the class core-rukpak-io-plain and with a second class that this package defines.
package requirements
