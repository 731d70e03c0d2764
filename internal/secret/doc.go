// Package secret keeps secrets secret: a string that prints as stars, and AES-256-GCM envelopes for everything secret at rest.
package secret
