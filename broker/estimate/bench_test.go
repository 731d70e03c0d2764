package estimate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/broker/estimate"
)

// BenchmarkForecast measures the cost of the forecast in a poll of last_operation: the comparison with 40 past operations of 30 steps.
func BenchmarkForecast(b *testing.B) {
	past := &history{}

	for i := range 40 {
		steps, order := map[string]int{}, []string{}

		for step := range 30 {
			name := fmt.Sprintf("step-%d", step)
			steps[name], order = 1+(i+step)%5, append(order, name)
		}

		past.add("provision", "plan", steps, order...)
	}

	estimator := estimate.New(past, past)
	if err := estimator.Refresh(b.Context()); err != nil {
		b.Fatal(err)
	}

	record := running("provision", "step-15", 40)

	for b.Loop() {
		if estimator.Forecast(record, "plan", start.Add(41*time.Minute)).Percent == 0 {
			b.Fatal("there is no forecast")
		}
	}
}
