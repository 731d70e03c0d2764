// Package requirements tests the ten requirements of the provisioner specification on a real API server, each in its own file. Each test
// runs with the class core-rukpak-io-plain and with a second class that this package defines.
package requirements
