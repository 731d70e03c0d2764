// Package bounds limits the cost of requests before the services spend it. JSON counts the parts of a JSON text without decoding
// them, so that hostile input is rejected after a single pass over its bytes. The remaining constants are the limits of an order.
// The broker and the Provisioner share them: the Provisioner does not reject an order that the broker has accepted because of its
// size.
package bounds
