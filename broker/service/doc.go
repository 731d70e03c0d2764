// Package service puts the broker together: its configuration, its parts, and how they start and stop.
package service
