package views

import (
	"strconv"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// Overview is the state of all instances and operations.
type Overview struct {
	// Total is the number of all instances. States contains the number of instances in each state.
	Total  int
	States []Count
	// Failures counts, for each error, the failed operations that were accepted in the last 24 hours. The most frequent error comes
	// first.
	Failures []Count
	// Durations are the usual durations of each operation kind.
	Durations []Span
	// Stuck are the operations that may need an operator.
	Stuck []operatorapi.Operation
	// Systems are the systems whose circuit breaker is not closed on this replica.
	Systems []operatorapi.System
	// Pool counts the cloud accounts by type and state. It is nil if there is no account pool. PoolProblem says why the accounts
	// could not be counted, or is empty.
	Pool        []PoolType
	PoolProblem string
	Now         time.Time
}

// Count is a number in the overview, with its label.
type Count struct {
	Name   string
	Number int
}

// Span is the usual duration of an operation kind: the median (Likely) and the 95th percentile (Late).
type Span struct {
	Name         string
	Likely, Late time.Duration
}

// PoolType counts the cloud accounts of one type by state.
type PoolType struct {
	Name   string
	States map[string]int
}

// Total returns the number of accounts in all states.
func (p PoolType) Total() int {
	total := 0
	for _, number := range p.States {
		total += number
	}

	return total
}

// The dimensions of charts, in units of their SVG view boxes.
const (
	chartWidth = 480
	chartName  = 170
	chartValue = 70
	chartRow   = 26
	chartBar   = 14
)

// bar is a row in a bar chart.
type bar struct {
	Name, Value string
	// Width is the length of the solid part of the bar. Range is the length of the lighter part after it, from the likely to the
	// late duration; it is 0 if there is none.
	Width, Range int
	Tone         string
}

// y returns the vertical coordinate of a row, moved down by the offset.
func y(row, offset int) string { return strconv.Itoa(row*chartRow + offset) }

// chartLabel returns the text that screen readers read for a chart: its title, with the names and values of its rows.
func chartLabel(title string, rows []bar) string {
	texts := make([]string, 0, len(rows))
	for _, row := range rows {
		texts = append(texts, row.Name+" "+row.Value)
	}

	return title + ": " + strings.Join(texts, ", ")
}

func number(value int) string { return strconv.Itoa(value) }

// bars returns the rows of a bar chart. The bar of each number above 0 has a minimum width, so that it stays visible.
func bars(counts []Count, toneOf func(string) string) []bar {
	most := 1
	for _, count := range counts {
		most = max(most, count.Number)
	}

	rows := make([]bar, 0, len(counts))

	for _, count := range counts {
		row := bar{Name: count.Name, Value: strconv.Itoa(count.Number), Tone: toneOf(count.Name)}
		if count.Number > 0 {
			row.Width = max(count.Number*(chartWidth-chartName-chartValue)/most, 3)
		}

		rows = append(rows, row)
	}

	return rows
}

// spans returns the rows of a chart of durations.
func spans(durations []Span) []bar {
	var latest time.Duration
	for _, span := range durations {
		latest = max(latest, span.Late)
	}

	rows := make([]bar, 0, len(durations))

	for _, span := range durations {
		width := func(d time.Duration) int {
			return max(int(int64(d)*(chartWidth-chartName-chartValue)/max(int64(latest), 1)), 3)
		}

		rows = append(rows, bar{
			Name: span.Name, Value: duration(span.Likely) + " – " + duration(span.Late), Tone: "busy",
			Width: width(span.Likely), Range: max(width(span.Late)-width(span.Likely), 0),
		})
	}

	return rows
}

// badTone gives every row the color of failures.
func badTone(string) string { return "bad" }
