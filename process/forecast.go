package process

import "time"

// Forecast predicts the end of an operation from past operations. The zero value means that nothing is known. The engine does not
// use forecasts.
type Forecast struct {
	// Percent is the estimated percentage of the work that is done, from 1 to 99, or 0 if it is unknown.
	Percent int
	// Likely and Latest are the times by which half and 95 % of comparable past operations would have ended. They are zero if this
	// operation has already taken longer than all of them.
	Likely, Latest time.Time
}
