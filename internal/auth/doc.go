// Package auth lets users in by HTTP Basic authentication and checks their roles.
package auth
