package main

import (
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/test/bench/measure"
	"github.com/environment-broker/environment-broker/test/bench/program"
)

// line is a line of the table.
type line struct {
	what, measured, floor, ratio, must string
	reached                            reached
}

// reached says whether a figure is what it must be. It is empty where nothing is demanded.
type reached string

func verdict(holds bool) reached {
	if holds {
		return "yes"
	}

	return "**no**"
}

// besideFloor is the line of a rate. Of the ratios, each of two measurements of the same round, the median has to be at least the
// share; with 0 nothing is demanded.
func besideFloor(what string, values, floors []float64, share float64) line {
	ratio := measure.Median(measure.Ratios(values, floors))

	told := line{
		what: what, measured: rounded(measure.Median(values)), floor: rounded(measure.Median(floors)), ratio: percent(ratio),
	}

	if share > 0 {
		told.must, told.reached = "≥ "+percent(share)+" of the floor", verdict(ratio >= share)
	}

	return told
}

func rounded(value float64) string { return fmt.Sprintf("%.0f", value) }

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// inMilliseconds is the median in milliseconds.
func inMilliseconds(values []time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(measure.Median(values))/float64(time.Millisecond))
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/program.MiB) }
