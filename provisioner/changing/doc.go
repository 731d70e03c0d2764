// Package changing is the Provisioner's processes that change a cluster which is there: its upgrade, its hibernation and its waking. A
// step a file.
package changing
