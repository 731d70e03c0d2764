package jobs

import (
	"fmt"
	"time"
)

const (
	day = 24 * time.Hour
	// dailyCheck is how often the background looks whether a daily job has to run.
	dailyCheck = time.Minute
	// dailyWindow is how late a daily job may begin. If no replica runs within it, the job runs on the next day: its time was chosen because
	// it suits users.
	dailyWindow = time.Hour
)

// ParseDaily returns the time since midnight for a time of day such as 02:30.
func ParseDaily(text string) (time.Duration, error) {
	at, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is no time of day such as 02:30", text)
	}

	return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute, nil
}

// DailyText returns the time of day at which the job runs, such as 02:30, or an empty string if it runs at its interval.
func (j Job) DailyText() string {
	if j.Daily == nil {
		return ""
	}

	return time.Time{}.Add(*j.Daily).Format("15:04")
}

// checkEvery returns how often the background looks whether the job has to run.
func (j Job) checkEvery() time.Duration {
	if j.Daily != nil {
		return dailyCheck
	}

	return j.Every
}

// turn returns the time until which the former run must have made the job due, and when the job is due again. Outside of the window of a
// daily job, the first time is zero: no run is that old.
func (j Job) turn(now time.Time) (due, next time.Time) {
	if j.Daily == nil {
		return now, now.Add(j.Every)
	}

	latest := now.UTC().Truncate(day).Add(*j.Daily)
	if latest.After(now) {
		latest = latest.Add(-day)
	}

	next = latest.Add(day)

	if now.Sub(latest) > dailyWindow {
		return time.Time{}, next
	}

	return now, next
}
