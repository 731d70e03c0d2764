package environment

import "time"

// SystemBTPOperator is the system of events about the Secret of the SAP BTP service operator in a runtime.
const SystemBTPOperator = "btp-operator"

// Event is something that the broker has done to an instance besides its operations. Equal events of a system that follow each other
// are one event, which counts them.
type Event struct {
	InstanceID string
	// System is that of an OutsideObject, or SystemBTPOperator.
	System string
	// Result is renewed, restored, current, repaired or failed.
	Result string
	// Message is a text of the broker without secrets.
	Message string
	Count   int
	// FirstAt and LastAt are the times of the first and the newest occurrence.
	FirstAt, LastAt time.Time
}
