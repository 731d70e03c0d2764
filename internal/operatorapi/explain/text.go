package explain

import (
	"fmt"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/timetext"
)

// StageText returns the stage and its position, such as "check_runtime (3 of 4)".
func (p Place) StageText() string {
	if p.StageNumber == 0 {
		return p.Stage
	}

	return fmt.Sprintf("%s (%d of %d)", p.Stage, p.StageNumber, p.StageCount)
}

// StepText returns the step and the number of its attempt, such as "Check_Runtime, attempt 4".
func (p Place) StepText() string {
	if p.Attempt == 0 {
		return p.Step
	}

	return fmt.Sprintf("%s, attempt %d", p.Step, p.Attempt)
}

// Continues returns when a waiting operation resumes, such as "in 2s" or "in 10m, or earlier on an event". It returns an empty
// string if the operation is not waiting or the wait has no time limit.
func (e Explanation) Continues() string {
	if e.Wait == nil || e.Wait.Until.IsZero() {
		return ""
	}

	text := "now"
	if remaining := e.Wait.Until.Sub(e.At); remaining > 0 {
		text = "in " + timetext.Duration(remaining)
	}

	if e.Wait.Event != "" && text != "now" {
		text += ", or earlier on an event"
	}

	if unavailable(e.System) {
		text += " or as soon as " + e.System.Name + " is available"
	}

	return text
}

// GivesUp returns what happens if the step never succeeds, such as "in about 58m at the latest: the operation fails". It returns an
// empty string if the operation is not waiting or the time is unknown.
func (e Explanation) GivesUp() string {
	if e.Wait == nil || e.Wait.GivesUpAt.IsZero() {
		return ""
	}

	result := "the operation fails"
	if e.Wait.Optional {
		result = "the operation continues without the step"
	}

	return fmt.Sprintf("in about %s at the latest: %s", timetext.Duration(max(e.Wait.GivesUpAt.Sub(e.At), 0)), result)
}

// ProblemText formats a problem on one line: the message, what the other system reported and, if known, the component and the reason in
// parentheses.
func ProblemText(problem operatorapi.Problem) string {
	var origin []string

	for _, word := range []string{problem.Component, problem.Reason} {
		if word != "" {
			origin = append(origin, word)
		}
	}

	text := failure.WithDetail(problem.Message, problem.Detail)
	if len(origin) == 0 {
		return text
	}

	return fmt.Sprintf("%s (%s)", text, strings.Join(origin, ": "))
}

// Cause says in one line why the operation does not proceed: the failing upstream system, or else the error that delays the
// operation, or else its step. A system that is available is never given as the cause, even if it reported the error.
func (e Explanation) Cause() string {
	switch {
	case unavailable(e.System) || e.System.Failures > 0:
		return e.SystemText()
	case e.Problem.Message != "":
		return ProblemText(e.Problem)
	case e.Place == nil:
		return strings.TrimSuffix(e.Summary, ".")
	}

	text := e.Place.StageText() + ", " + e.Place.StepText()
	if !e.Place.Since.IsZero() {
		text += ", since " + timetext.Time(e.Place.Since)
	}

	if e.Wait != nil && e.Wait.Why != "" {
		text += ": " + e.Wait.Why
	}

	return text
}

// Values of System.State in the operator API. An open breaker rejects all calls. The third value, "half-open", needs no constant: the
// breaker then lets a single trial call through.
const (
	breakerClosed = "closed"
	breakerOpen   = "open"
)

// unavailable reports whether the system's circuit breaker is open or half-open. It returns false for the zero System.
func unavailable(system operatorapi.System) bool {
	return system.Name != "" && system.State != breakerClosed
}

func failedCalls(count int) string {
	if count == 1 {
		return "1 failed call"
	}

	return fmt.Sprintf("%d failed calls in a row", count)
}

// SystemText describes the upstream system that delays the operation: its failures, and either its calls in flight or the time of
// the next call. It returns an empty string if no system delays the operation.
func (e Explanation) SystemText() string {
	system := e.System
	if system.Name == "" {
		return ""
	}

	text := system.Name + " is available"
	if system.Failures > 0 {
		text = fmt.Sprintf("%s: %s since %s; last error: %s",
			system.Name, failedCalls(system.Failures), timetext.Time(system.FailingSince), system.LastFault)
	}

	switch {
	case !unavailable(system):
		return fmt.Sprintf("%s; %d of at most %d calls in flight", text, system.CallsInFlight, system.CallsLimit)
	case system.State == breakerOpen && !system.NextTry.IsZero():
		return fmt.Sprintf("%s; next call in %s", text, timetext.Duration(system.NextTry.Sub(e.At)))
	default:
		return text + "; a trial call is in progress"
	}
}
