package environment

import "time"

// SystemBTPOperator is the Event.System value for events about the SAP BTP service operator's Secret in a runtime.
const SystemBTPOperator = "btp-operator"

// Event records something that the broker did to an instance outside of an operation. Consecutive events of a system that differ
// only in their times are stored as one event with a count.
type Event struct {
	InstanceID string
	// System is a value of OutsideObject.System, or SystemBTPOperator.
	System string
	// Result is "renewed", "restored", "current", "repaired" or "failed".
	Result string
	// Message is written by the broker and contains no secrets.
	Message string
	Count   int
	// FirstAt and LastAt are the times of the first and the latest occurrence.
	FirstAt, LastAt time.Time
}
