// Package delivery sends records of the audit log to a collector: a syslog server (RFC 5424 over TCP or TLS), or an HTTP server
// that accepts JSON Lines.
//
// A batch is sent as a whole, and counts as delivered only if the collector confirms it. An HTTP server confirms a batch with a
// status below 300. A syslog server confirms a batch by closing the connection after the last message, because syslog has no
// confirmations of its own. The caller repeats unconfirmed batches, so the collector gets each record at least once, in the order
// of the chain.
package delivery
