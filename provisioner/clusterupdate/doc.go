// Package clusterupdate is the Provisioner's processes that change a cluster which is there: its upgrade, its hibernation and its waking, and
// the upgrade of its Kyma. A step a file.
package clusterupdate
