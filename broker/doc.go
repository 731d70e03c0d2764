// Package broker answers the Open Service Broker API 2.17: one file an endpoint. A request that starts work is one transaction,
// instance and operation together; the answer is sent after the commit, and the engine does the work.
//
// Routes exist under /v2, /oauth/v2 and /oauth/{region}/v2, where the region is the platform's.
package broker
