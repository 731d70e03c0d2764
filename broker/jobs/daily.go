package jobs

import (
	"fmt"
	"time"
)

const (
	day = 24 * time.Hour
	// dailyCheck is the interval between two checks of whether a daily job is due.
	dailyCheck = time.Minute
	// dailyWindow is how late a daily job may start. If no replica runs within the window, the job is skipped until the next day,
	// because operators chose a time that suits users.
	dailyWindow = time.Hour
)

// ParseDaily converts a time of day such as 02:30 to the time since midnight.
func ParseDaily(text string) (time.Duration, error) {
	at, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of day such as 02:30", text)
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

// checkEvery returns the interval between two checks of whether the job is due.
func (j Job) checkEvery() time.Duration {
	if j.Daily != nil {
		return dailyCheck
	}

	return j.Every
}

// turn returns the times for Reports.Claim: due is compared with the stored time of the next run, and next replaces that time.
// Outside the window of a daily job, due is zero, so the job does not run.
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
