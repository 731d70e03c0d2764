package ebctl

import (
	"errors"
	"time"
)

// timeLimit is the value of a flag with a duration that must not be negative, such as --wait-timeout. *timeLimit implements pflag.Value.
type timeLimit time.Duration

// timeLimitOf returns the flag value that sets duration, which gets the default standard.
func timeLimitOf(duration *time.Duration, standard time.Duration) *timeLimit {
	*duration = standard

	return (*timeLimit)(duration)
}

// Set parses a duration such as 90s.
func (l *timeLimit) Set(given string) error {
	duration, err := time.ParseDuration(given)
	if err != nil {
		return err
	}

	if duration < 0 {
		return errors.New("must not be negative")
	}

	*l = timeLimit(duration)

	return nil
}

// String returns the duration. For no duration, it returns 0, which help texts do not show as a default.
func (l *timeLimit) String() string {
	if *l == 0 {
		return "0"
	}

	return time.Duration(*l).String()
}

// Type returns the name of the type in help texts.
func (l *timeLimit) Type() string { return "duration" }
