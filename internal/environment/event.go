package environment

import "time"

// SystemBTPOperator is the system of events about the Secret of the SAP BTP service operator in a runtime.
const SystemBTPOperator = "btp-operator"

// Event is an action of the broker on an instance outside of its operations. Consecutive equal events of a system are stored as
// one event with a count.
type Event struct {
	InstanceID string
	// System is a system of OutsideObjects, or SystemBTPOperator.
	System string
	// Result is renewed, restored, current, repaired or failed.
	Result string
	// Message is a text by the broker and contains no secrets.
	Message string
	Count   int
	// FirstAt and LastAt are the times of the first and the latest occurrence.
	FirstAt, LastAt time.Time
}
