package main

import (
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/test/bench/measure"
	"github.com/environment-broker/environment-broker/test/bench/program"
)

// line is a row of the page's table.
type line struct {
	what, measured, floor, ratio, must string
	reached                            reached
}

// reached is the verdict on a figure, empty without a target.
type reached string

func verdict(holds bool) reached {
	if holds {
		return "yes"
	}

	return "**no**"
}

// besideFloor returns the line of a rate compared to its floor. The median of the ratios must be at least share; 0 means no target. Each
// ratio is of one round, so a machine that slows down during the measurement affects rate and floor alike.
func besideFloor(what string, values, floors []float64, share float64) line {
	ratio := measure.Median(measure.Ratios(values, floors))

	compared := line{
		what: what, measured: rounded(measure.Median(values)), floor: rounded(measure.Median(floors)), ratio: percent(ratio),
	}

	if share > 0 {
		compared.must, compared.reached = "≥ "+percent(share)+" of the floor", verdict(ratio >= share)
	}

	return compared
}

// target returns the line of a figure with a target, which must names and holds decides.
func target(what, measured, must string, holds bool) line {
	return line{what: what, measured: measured, must: must, reached: verdict(holds)}
}

func rounded(value float64) string { return fmt.Sprintf("%.0f", value) }

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

func inMilliseconds(value time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(value)/float64(time.Millisecond))
}

func inSeconds(value time.Duration) string { return fmt.Sprintf("%.1f s", value.Seconds()) }

// mebibytes formats a number of bytes.
func mebibytes(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/program.MiB) }
