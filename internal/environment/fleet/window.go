package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7
	// dayNames are the names of the days in files and in Window.String.
	dayNames = "Sun Mon Tue Wed Thu Fri Sat"
	// shootTime is the format of times in Shoots and in policies of Kyma Environment Broker. wallTime and shortTime are the
	// formats of times with a separate time zone.
	shootTime = "150405-0700"
	wallTime  = "15:04:05"
	shortTime = "15:04"
	// maxOffset is the largest offset of a time zone from UTC, in seconds.
	maxOffset = 14 * 60 * 60
)

// Window is a maintenance window that repeats on days of the week. Begin and End are times of day in Location, as the time since
// midnight. If End is not after Begin, the window ends on the next day. The zero value means that there is no window.
//
// The window follows the clocks of Location. When the clocks go forward, the window lacks the part that they skip. When they go
// back, the window contains the repeated hour only once, so that windows do not become longer.
type Window struct {
	// Days are the days of the week on which the window begins, in order, starting with Sunday. Empty means every day.
	Days       []time.Weekday
	Begin, End time.Duration
	Location   *time.Location
}

// IsZero reports whether there is no window.
func (w Window) IsZero() bool { return w.Location == nil }

// Next returns the first occurrence that ends after the given time. The occurrence may already have begun. Both results are zero
// if there is no occurrence.
func (w Window) Next(after time.Time) (begin, end time.Time) {
	if w.IsZero() {
		return time.Time{}, time.Time{}
	}

	local := after.In(w.Location)

	// A window that began yesterday can last until today. If a clock change skips an occurrence, there is another one in the second
	// week.
	for offset := -1; offset <= 2*week; offset++ {
		date := time.Date(local.Year(), local.Month(), local.Day()+offset, 0, 0, 0, 0, time.UTC)
		if len(w.Days) > 0 && !slices.Contains(w.Days, date.Weekday()) {
			continue
		}

		begin, end = w.occurrence(date)
		if begin.Before(end) && end.After(after) {
			return begin.UTC(), end.UTC()
		}
	}

	return time.Time{}, time.Time{}
}

// occurrence returns the occurrence of the window that begins on the given date, which is passed as midnight in UTC. If a clock
// change skips the whole window, end is not after begin.
func (w Window) occurrence(date time.Time) (begin, end time.Time) {
	last := date
	if w.End <= w.Begin {
		last = date.Add(day)
	}

	begins, ends := w.instants(date.Add(w.Begin)), w.instants(last.Add(w.End))
	begin, end = begins[len(begins)-1], ends[0]

	if len(ends) > 1 && !end.After(begin) {
		end = ends[1]
	}

	return begin, end
}

// instants returns the instants at which the clocks in w.Location show the given time. The fields of shown are this local time,
// although its location is UTC. If clocks go back and show the time twice, there are two instants. If clocks go forward and skip
// the time, the result is the instant of the clock change.
func (w Window) instants(shown time.Time) []time.Time {
	var found []time.Time

	_, before := shown.Add(-day).In(w.Location).Zone()
	_, behind := shown.Add(day).In(w.Location).Zone()

	for _, offset := range []int{before, behind} {
		at := shown.Add(-time.Duration(offset) * time.Second)
		if _, actual := at.In(w.Location).Zone(); actual == offset && !slices.ContainsFunc(found, at.Equal) {
			found = append(found, at)
		}
	}

	if len(found) == 0 { // the clocks skip this time; with the earlier offset, it would be after the change
		change, _ := shown.Add(-time.Duration(before) * time.Second).In(w.Location).ZoneBounds()
		found = append(found, change)
	}

	return found
}

// String returns the window in the form that ParseWindow reads, such as "Sat,Sun 22:00:00-02:00:00 Europe/Berlin", or "" if there
// is no window.
func (w Window) String() string {
	if w.IsZero() {
		return ""
	}

	days := "daily"
	if len(w.Days) > 0 {
		names := make([]string, 0, len(w.Days))
		for _, each := range w.Days {
			names = append(names, strings.Fields(dayNames)[each])
		}

		days = strings.Join(names, ",")
	}

	midnight := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) //nolint:mnd // any date

	return fmt.Sprintf("%s %s-%s %s", days, midnight.Add(w.Begin).Format(wallTime), midnight.Add(w.End).Format(wallTime), w.Location)
}

// ParseWindow parses a window in the form that Window.String returns. The error is of type ValidationError.
func ParseWindow(text string) (Window, error) {
	if text == "" {
		return Window{}, nil
	}

	fields := strings.Fields(text)
	if len(fields) != 3 { //nolint:mnd // days, times, zone
		return Window{}, invalid("%q is not a maintenance window", text)
	}

	var days []string
	if fields[0] != "daily" {
		days = strings.Split(fields[0], ",")
	}

	begin, end, _ := strings.Cut(fields[1], "-")

	return WindowTimes{Days: days, Begin: begin, End: end, TimeZone: fields[2]}.Window()
}

// WindowTimes is a maintenance window in files. Its JSON form is compatible with Kyma Environment Broker's maintenance
// policy, and has the additional field timeZone.
type WindowTimes struct {
	// Days contains any of Mon, Tue, Wed, Thu, Fri, Sat and Sun. Empty means every day.
	Days []string `json:"days,omitempty"`
	// Begin and End have the form 220000+0100 or, with TimeZone, 22:00 or 22:00:00.
	Begin string `json:"timeBegin,omitempty"`
	End   string `json:"timeEnd,omitempty"`
	// TimeZone is a name in the IANA time zone database, such as Europe/Berlin, or an offset, such as +01:00. With a name, the
	// window follows the clock changes of the time zone.
	TimeZone string `json:"timeZone,omitempty"`
}

// Window parses the fields. The error is of type ValidationError.
func (t WindowTimes) Window() (window Window, err error) {
	if window.Days, err = t.days(); err != nil {
		return Window{}, err
	}

	if t.Begin == "" || t.End == "" {
		return Window{}, invalid("timeBegin and timeEnd are required")
	}

	begin, zone, err := t.time("timeBegin", t.Begin)
	if err != nil {
		return Window{}, err
	}

	end, endZone, err := t.time("timeEnd", t.End)
	if err != nil {
		return Window{}, err
	}

	window.Begin, window.Location = begin, zone
	// If the two times have different offsets, convert the end to the offset of the beginning.
	window.End = (end + offsetOf(zone) - offsetOf(endZone) + 2*day) % day //nolint:mnd // offsets differ by less than two days

	return window, nil
}

// days returns Days as weekdays, sorted and without duplicates.
func (t WindowTimes) days() ([]time.Weekday, error) {
	var days []time.Weekday

	for _, name := range t.Days {
		at := slices.Index(strings.Fields(dayNames), name)
		if at < 0 {
			return nil, invalid("%q is not a day; use Mon, Tue, Wed, Thu, Fri, Sat or Sun", name)
		}

		days = append(days, time.Weekday(at))
	}

	slices.Sort(days)

	return slices.Compact(days), nil
}

// time parses a time of day. It returns the time since midnight, and the time zone. name is the name of the field, for errors.
func (t WindowTimes) time(name, value string) (time.Duration, *time.Location, error) {
	for _, format := range []string{shootTime, wallTime, shortTime} {
		parsed, err := time.Parse(format, value)
		if err != nil || (format == shootTime) != (t.TimeZone == "") || parsed.Nanosecond() != 0 { // time.Parse permits fractions
			continue
		}

		zone, err := t.zone(parsed)
		midnight := time.Date(parsed.Year(), parsed.Month(), parsed.Day(), 0, 0, 0, 0, parsed.Location())

		return parsed.Sub(midnight), zone, err
	}

	if t.TimeZone == "" {
		return 0, nil, invalid("%s must have the form 220000+0100 or, if timeZone is set, the form 22:00", name)
	}

	return 0, nil, invalid("%s must have the form 22:00 or 22:00:00, because timeZone is set", name)
}

// zone returns the location that TimeZone specifies. If TimeZone is empty, it returns a location with the offset of the given
// time.
func (t WindowTimes) zone(of time.Time) (*time.Location, error) {
	if offset, err := time.Parse("-07:00", t.TimeZone); err == nil {
		of = offset
	} else if t.TimeZone != "" {
		zone, err := time.LoadLocation(t.TimeZone)
		if err != nil || t.TimeZone == "Local" { // "Local" is the zone of the host
			return nil, invalid("timeZone %q is unknown; use a name such as Europe/Berlin", t.TimeZone)
		}

		return zone, nil
	}

	_, offset := of.Zone()
	if offset < -maxOffset || offset > maxOffset { // time.Parse accepts 25 hours here, but not when ParseWindow reads the stored window
		return nil, invalid("the offset %s is invalid; it must be between -14:00 and +14:00", of.Format("-07:00"))
	}

	return time.FixedZone(of.Format("-07:00"), offset), nil
}

// offsetOf returns the offset of a location with a fixed offset, in the form of a duration. It returns 0 for other locations,
// because times in them are written without an offset.
func offsetOf(location *time.Location) time.Duration {
	if _, err := time.Parse("-07:00", location.String()); err != nil {
		return 0
	}

	_, offset := time.Unix(0, 0).In(location).Zone()

	return time.Duration(offset) * time.Second
}
