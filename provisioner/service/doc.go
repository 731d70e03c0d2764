// Package service puts the Provisioner together: its configuration, its parts, and how they start and stop.
package service
