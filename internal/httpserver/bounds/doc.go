// Package bounds rejects requests that would be too expensive to process, and limits the size of responses from other systems.
//
// JSON counts the values and field names in a JSON text without decoding it, so that hostile input is rejected after a single pass
// over its bytes. The constants in orders.go limit an order for a runtime. The broker and the Provisioner share these constants, so
// an order that the broker accepts is never too large for the Provisioner. Responses limits the size of a response that a client
// reads.
package bounds
