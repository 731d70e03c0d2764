package fleet_test

import (
	"slices"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment/fleet"
)

// FuzzWindow parses arbitrary maintenance windows. A valid one keeps its meaning when the database stores it, and has occurrences.
func FuzzWindow(f *testing.F) {
	for _, seed := range [][4]string{
		{"Sat", "220000+0100", "020000+0100", ""},
		{"", "22:00", "02:00:00", "Europe/Berlin"},
		{"Sun", "000000+0000", "000000-1200", ""},
		{"Mon", "22:00:00.5", "23:00", "UTC"},
		{"", "220000+2460", "020000+0100", ""},
		{"", "22:00", "02:00", "+24:60"},
		{"", "22:00", "02:00", "Local"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}

	after := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

	f.Fuzz(func(t *testing.T, day, begin, end, zone string) {
		times := fleet.WindowTimes{Begin: begin, End: end, TimeZone: zone}
		if day != "" {
			times.Days = []string{day, day}
		}

		window, err := times.Window()
		if err != nil {
			return
		}

		first, last := window.Next(after)
		if !last.After(after) || !last.After(first) || last.Sub(first) > 25*time.Hour {
			t.Errorf("%+v has the occurrence %s to %s", times, first, last)
		}

		again, err := fleet.ParseWindow(window.String())
		if err != nil || again.Begin != window.Begin || again.End != window.End || !slices.Equal(again.Days, window.Days) || again.String() != window.String() {
			t.Errorf("%+v is stored as %q and read as %+v, %v", times, window, again, err)
		}
	})
}
