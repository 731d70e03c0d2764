package fleet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment/fleet"
)

// times returns the times of a window from a text such as "Sat,Sun 22:00-02:00 Europe/Berlin".
func times(text string) fleet.WindowTimes {
	fields := strings.Fields(text)
	begin, end, _ := strings.Cut(fields[1], "-")

	return fleet.WindowTimes{Days: strings.FieldsFunc(strings.TrimPrefix(fields[0], "daily"), func(r rune) bool { return r == ',' }), Begin: begin, End: end, TimeZone: fields[2]}
}

func window(t *testing.T, of fleet.WindowTimes) fleet.Window {
	t.Helper()

	found, err := of.Window()
	if err != nil {
		t.Fatal(err)
	}

	return found
}

func TestNextWindow(t *testing.T) {
	for name, c := range map[string]struct{ reason, window, after, want string }{
		"today":               {"later today", "daily 22:00-02:00 Europe/Berlin", "2030-01-02T12:00:00Z", "2030-01-02T21:00:00Z 2030-01-03T01:00:00Z"},
		"open":                {"it has begun yesterday", "daily 22:00-02:00 Europe/Berlin", "2030-01-03T00:59:59Z", "2030-01-02T21:00:00Z 2030-01-03T01:00:00Z"},
		"over":                {"the end does not belong to it", "daily 22:00-02:00 Europe/Berlin", "2030-01-03T01:00:00Z", "2030-01-03T21:00:00Z 2030-01-04T01:00:00Z"},
		"summer":              {"the clocks of the zone count", "daily 22:00-02:00 Europe/Berlin", "2030-07-02T12:00:00Z", "2030-07-02T20:00:00Z 2030-07-03T00:00:00Z"},
		"day":                 {"the day on which it begins counts", "Sat 22:00-02:00 UTC", "2030-01-06T01:00:00Z", "2030-01-05T22:00:00Z 2030-01-06T02:00:00Z"},
		"next week":           {"its only day is over", "Sat 22:00-02:00 UTC", "2030-01-06T02:00:00Z", "2030-01-12T22:00:00Z 2030-01-13T02:00:00Z"},
		"whole day":           {"equal times mean 24 hours", "Sun 00:00-00:00 UTC", "2030-01-02T12:00:00Z", "2030-01-06T00:00:00Z 2030-01-07T00:00:00Z"},
		"offset":              {"an offset has no daylight saving", "daily 01:00-02:00 +05:30", "2030-07-02T12:00:00Z", "2030-07-02T19:30:00Z 2030-07-02T20:30:00Z"},
		"skipped begin":       {"it begins when the clocks go forward", "daily 02:30-03:30 Europe/Berlin", "2030-03-31T00:00:00Z", "2030-03-31T01:00:00Z 2030-03-31T01:30:00Z"},
		"skipped end":         {"it ends when the clocks go forward", "daily 01:30-02:30 Europe/Berlin", "2030-03-31T00:00:00Z", "2030-03-31T00:30:00Z 2030-03-31T01:00:00Z"},
		"skipped":             {"the clocks never show it on this day", "daily 02:15-02:45 Europe/Berlin", "2030-03-31T00:00:00Z", "2030-04-01T00:15:00Z 2030-04-01T00:45:00Z"},
		"only day is skipped": {"a week later", "Sun 02:15-02:45 Europe/Berlin", "2030-03-31T00:00:00Z", "2030-04-07T00:15:00Z 2030-04-07T00:45:00Z"},
		"shorter":             {"an hour is missing", "daily 00:00-06:00 Europe/Berlin", "2030-03-30T23:00:00Z", "2030-03-30T23:00:00Z 2030-03-31T04:00:00Z"},
		"longer":              {"an hour is repeated", "daily 00:00-06:00 Europe/Berlin", "2030-10-26T22:00:00Z", "2030-10-26T22:00:00Z 2030-10-27T05:00:00Z"},
		"repeated":            {"the second time counts", "daily 02:15-02:45 Europe/Berlin", "2030-10-27T00:00:00Z", "2030-10-27T01:15:00Z 2030-10-27T01:45:00Z"},
		"repeated begin":      {"not before the clocks stay in it", "daily 02:30-03:30 Europe/Berlin", "2030-10-27T00:00:00Z", "2030-10-27T01:30:00Z 2030-10-27T02:30:00Z"},
		"repeated end":        {"not after the clocks have left it", "daily 01:30-02:30 Europe/Berlin", "2030-10-26T23:00:00Z", "2030-10-26T23:30:00Z 2030-10-27T00:30:00Z"},
		"southern":            {"half an hour, in October", "daily 02:00-03:00 Australia/Lord_Howe", "2030-10-05T12:00:00Z", "2030-10-05T15:30:00Z 2030-10-05T16:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			after, err := time.Parse(time.RFC3339, c.after)
			if err != nil {
				t.Fatal(err)
			}

			begin, end := window(t, times(c.window)).Next(after)
			if got := begin.Format(time.RFC3339) + " " + end.Format(time.RFC3339); got != c.want {
				t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}
		})
	}

	if begin, end := (fleet.Window{}).Next(time.Now()); !begin.IsZero() || !end.IsZero() {
		t.Errorf("without a window: %s, %s", begin, end)
	}
}

// TestWindowsFollowClocks compares windows with the clocks of their zones, every five minutes around changes in both directions. A window is
// open only while the clocks show a time in it. While they do, it is closed only in a repeated hour.
func TestWindowsFollowClocks(t *testing.T) {
	const step = 5 * time.Minute

	changes := map[string][]time.Time{
		"Europe/Berlin":       {time.Date(2030, 3, 31, 1, 0, 0, 0, time.UTC), time.Date(2030, 10, 27, 1, 0, 0, 0, time.UTC)},
		"America/New_York":    {time.Date(2030, 3, 10, 7, 0, 0, 0, time.UTC), time.Date(2030, 11, 3, 6, 0, 0, 0, time.UTC)},
		"Australia/Lord_Howe": {time.Date(2030, 4, 6, 15, 0, 0, 0, time.UTC), time.Date(2030, 10, 5, 15, 30, 0, 0, time.UTC)},
		"America/Havana":      {time.Date(2030, 3, 10, 5, 0, 0, 0, time.UTC), time.Date(2030, 11, 3, 5, 0, 0, 0, time.UTC)},
		"Asia/Kolkata":        {time.Date(2030, 3, 31, 1, 0, 0, 0, time.UTC)},
	}

	for zone, changes := range changes {
		for _, form := range []string{
			"daily 22:00-02:00", "daily 02:00-03:00", "Sun 02:15-02:45", "daily 01:30-02:30", "daily 02:30-01:30", "Sat 23:30-00:30", "Sat,Sun 00:00-00:00",
			"daily 00:30-00:30", "Sun 01:45-02:10",
		} {
			of := window(t, times(form+" "+zone))

			for _, change := range changes {
				for at := change.Add(-48 * time.Hour); at.Before(change.Add(48 * time.Hour)); at = at.Add(step) {
					begin, end := of.Next(at)
					open, shown := !begin.After(at), shows(of, at)

					if open && !shown || !open && shown && !repeats(at, of.Location) {
						t.Fatalf("%s %s at %s: open %v, from %s to %s", form, zone, at.In(of.Location), open, begin, end)
					}

					if !end.After(at) || !begin.Before(end) {
						t.Fatalf("%s %s at %s: from %s to %s", form, zone, at, begin, end)
					}
				}
			}
		}
	}
}

// shows reports whether the clocks of the window's zone show a time in it.
func shows(of fleet.Window, at time.Time) bool {
	local := at.In(of.Location)
	clock := time.Duration(local.Hour())*time.Hour + time.Duration(local.Minute())*time.Minute
	today, yesterday := on(of, local.Weekday()), on(of, (local.Weekday()+6)%7)

	if of.Begin < of.End {
		return today && of.Begin <= clock && clock < of.End
	}

	return today && of.Begin <= clock || yesterday && clock < of.End
}

func on(of fleet.Window, day time.Weekday) bool {
	return len(of.Days) == 0 || strings.Contains(fmt.Sprint(of.Days), day.String())
}

// repeats reports whether the clocks show the time twice on this day.
func repeats(at time.Time, zone *time.Location) bool {
	local := at.In(zone).Format(time.DateTime)

	for _, hour := range []time.Duration{-time.Hour, -30 * time.Minute, 30 * time.Minute, time.Hour} {
		if at.Add(hour).In(zone).Format(time.DateTime) == local {
			return true
		}
	}

	return false
}

func TestWindowTimes(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		times  fleet.WindowTimes
		want   string // the window, or a part of the error
	}{
		"Shoot":             {"the form of Gardener", fleet.WindowTimes{Begin: "220000+0100", End: "230000+0100"}, "daily 22:00:00-23:00:00 +01:00"},
		"UTC":               {"no offset", fleet.WindowTimes{Begin: "220000+0000", End: "023000+0000"}, "daily 22:00:00-02:30:00 +00:00"},
		"two offsets":       {"the end in the zone of the begin", fleet.WindowTimes{Begin: "220000+0100", End: "220000+0000"}, "daily 22:00:00-23:00:00 +01:00"},
		"far offsets":       {"more than a day apart", fleet.WindowTimes{Begin: "000000-1200", End: "000000+1400"}, "daily 00:00:00-22:00:00 -12:00"},
		"days":              {"sorted, each once", fleet.WindowTimes{Days: []string{"Sat", "Mon", "Sat"}, Begin: "220000+0100", End: "230000+0100"}, "Mon,Sat 22:00:00-23:00:00 +01:00"},
		"zone":              {"a name", times("daily 22:00-23:00 Europe/Berlin"), "daily 22:00:00-23:00:00 Europe/Berlin"},
		"zone offset":       {"an offset", times("daily 22:00:01-23:00 -03:30"), "daily 22:00:01-23:00:00 -03:30"},
		"no times":          {"there is no window", fleet.WindowTimes{Days: []string{"Sat"}}, "timeBegin and timeEnd are required"},
		"no end":            {"both are needed", fleet.WindowTimes{Begin: "220000+0100"}, "timeBegin and timeEnd are required"},
		"unknown day":       {"English and short", fleet.WindowTimes{Days: []string{"Samstag"}}, `"Samstag" is not a day`},
		"unknown zone":      {"it must exist", times("daily 22:00-23:00 Europe/Bonn"), `timeZone "Europe/Bonn" is unknown`},
		"zone of the host":  {"it depends on the host", times("daily 22:00-23:00 Local"), `timeZone "Local" is unknown`},
		"no zone":           {"the offset is missing", fleet.WindowTimes{Begin: "22:00", End: "23:00"}, "timeBegin must have the form 220000+0100"},
		"zone twice":        {"offset and zone contradict", fleet.WindowTimes{Begin: "220000+0100", End: "230000+0100", TimeZone: "UTC"}, "timeBegin must have the form 22:00 or 22:00:00"},
		"impossible time":   {"there is no such hour", times("daily 22:00-25:00 UTC"), "timeEnd must have the form 22:00"},
		"path as time zone": {"only the database is read", times("daily 22:00-23:00 ../../etc/passwd"), "is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := c.times.Window()
			if got := fmt.Sprint(found, err); err == nil && found.String() != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}

			if again, err := fleet.ParseWindow(found.String()); err != nil || again.String() != found.String() {
				t.Errorf("parsed %q as %q, %v", found, again, err)
			}
		})
	}
}

func TestPolicy(t *testing.T) {
	var (
		shoot = fleet.WindowTimes{Begin: "010000+0000", End: "020000+0000"}
		plan  = fleet.WindowTimes{Days: []string{"Tue"}, Begin: "02:00", End: "03:00", TimeZone: "Europe/Berlin"}
		none  = fleet.WindowTimes{}
	)

	policy := fleet.Policy{
		Rules: []fleet.PolicyRule{
			{Match: fleet.PolicyMatch{GlobalAccountID: "^ga-1$", Plan: "aws"}, WindowTimes: times("Sat 03:00-04:00 UTC")},
			{Match: fleet.PolicyMatch{Region: "^us-"}, WindowTimes: fleet.WindowTimes{Days: []string{"Sun"}}},
			{Match: fleet.PolicyMatch{Plan: "azure"}, WindowTimes: times("daily 05:00-06:00 UTC")},
		},
		Default: times("Fri 04:00-05:00 UTC"),
	}

	for name, c := range map[string]struct {
		reason      string
		policy      fleet.Policy
		of          fleet.Candidate
		plan, shoot fleet.WindowTimes
		want        string
	}{
		"rule":         {"the first one that matches", policy, fleet.Candidate{GlobalAccount: "ga-1", PlanName: "aws", Region: "us-east-1"}, plan, shoot, "Sat 03:00:00-04:00:00 UTC"},
		"other rule":   {"all fields must match", policy, fleet.Candidate{GlobalAccount: "ga-1", PlanName: "azure"}, none, shoot, "daily 05:00:00-06:00:00 UTC"},
		"only days":    {"the times of the Shoot", policy, fleet.Candidate{Region: "us-east-1"}, none, shoot, "Sun 01:00:00-02:00:00 +00:00"},
		"days of rule": {"the times of the plan", policy, fleet.Candidate{Region: "us-east-1"}, plan, shoot, "Sun 02:00:00-03:00:00 Europe/Berlin"},
		"plan":         {"before the default and the Shoot", policy, fleet.Candidate{}, plan, shoot, "Tue 02:00:00-03:00:00 Europe/Berlin"},
		"default":      {"before the Shoot", policy, fleet.Candidate{}, none, shoot, "Fri 04:00:00-05:00:00 UTC"},
		"Shoot":        {"without a policy", fleet.Policy{}, fleet.Candidate{}, none, shoot, "daily 01:00:00-02:00:00 +00:00"},
		"none":         {"nothing is known", fleet.Policy{}, fleet.Candidate{}, none, none, ""},
		"no times":     {"days alone are no window", policy, fleet.Candidate{Region: "us-east-1"}, none, none, ""},
	} {
		t.Run(name, func(t *testing.T) {
			windows, err := c.policy.Compile()
			if err != nil {
				t.Fatal(err)
			}

			if got, err := windows.Of(c.of, c.plan, c.shoot); err != nil || got.String() != c.want {
				t.Errorf("%s: got %q, %v, want %q", c.reason, got, err, c.want)
			}
		})
	}

	windows, err := policy.Compile()
	if got, ofErr := windows.Of(fleet.Candidate{InstanceID: "one", Region: "us-east-1"}, none, fleet.WindowTimes{Begin: "x", End: "y"}); err != nil || ofErr == nil {
		t.Errorf("a Shoot with an invalid window: %q, %v", got, err)
	}
}

func TestInvalidPolicies(t *testing.T) {
	for want, policy := range map[string]fleet.Policy{
		"default: timeBegin":               {Default: fleet.WindowTimes{Begin: "22:00", End: "23:00"}},
		"default: timeZone needs":          {Default: fleet.WindowTimes{TimeZone: "UTC"}},
		"rules[1]: ":                       {Rules: []fleet.PolicyRule{{}, {WindowTimes: fleet.WindowTimes{Days: []string{"x"}}}}},
		"rules[0].match.globalAccountID: ": {Rules: []fleet.PolicyRule{{Match: fleet.PolicyMatch{GlobalAccountID: "("}}}},
		"rules[0].match.plan: ":            {Rules: []fleet.PolicyRule{{Match: fleet.PolicyMatch{Plan: "("}}}},
		"rules[0].match.region: ":          {Rules: []fleet.PolicyRule{{Match: fleet.PolicyMatch{Region: "("}}}},
	} {
		if _, err := policy.Compile(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
