// Package seed holds the objects with which a local garden begins: a project with credentials for each provider, and what the providers
// offer. Both tiers of the local garden, in memory and with a real Gardener API server, start from them.
package seed
