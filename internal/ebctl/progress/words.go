package progress

import (
	"fmt"

	"github.com/environment-broker/environment-broker/internal/ebctl/explain"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/process"
)

// detail is why the operation stands where it stands, or nothing while it simply runs.
func detail(e explain.Explanation) string {
	switch {
	case e.Problem != nil && e.Ended():
		return explain.ProblemText(e.Problem)
	case e.Problem != nil:
		return "held up: " + explain.ProblemText(e.Problem)
	case e.Wait == nil || e.Wait.Why == "":
		return ""
	case process.State(e.State) == process.Pending:
		return e.Wait.Why
	default:
		return "waits: " + e.Wait.Why
	}
}

// step is the step and its attempt. A step that has its stage for itself bears the stage's name, which need not be said twice.
func step(place explain.Place) string {
	switch {
	case place.Step != place.Stage:
		return place.StepText()
	case place.Attempt > 0:
		return fmt.Sprintf("attempt %d", place.Attempt)
	default:
		return ""
	}
}

// trouble is why the operation is out of sight.
func trouble(moment follow.Moment) string {
	return moment.Trouble.Error() + "; asking again in " + output.Duration(moment.Next.Sub(moment.Now))
}
