package process

import "time"

// Forecast predicts the end of an operation from past operations. The zero value means that nothing is known. The engine does not
// use it.
type Forecast struct {
	// Percent is the part of the work that is done, from 1 to 99, or 0 if it is unknown.
	Percent int
	// Likely and Latest are the times before which half and 95 % of the past operations would have ended. They are zero if the
	// operation takes longer than all of them.
	Likely, Latest time.Time
}
