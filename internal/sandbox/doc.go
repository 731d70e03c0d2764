// Package sandbox runs everything on one machine: broker, provisioner and a garden, with data in one folder.
package sandbox
