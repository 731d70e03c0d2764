package main

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/measure"
)

// rate measures responses per second. Each run opens new connections.
func (s *scope) rate(ctx context.Context, name string, request func(number int) load.Request) measure.Subject[load.Rate] {
	return measure.Subject[load.Rate]{Name: name, Run: func() (load.Rate, error) {
		generator := load.New(clients)
		defer generator.Close()

		rate, err := generator.For(ctx, warmUp, while, request)
		s.progress("%s: %.0f/s, p99 %s", name, rate.PerSecond, measure.Percentile(rate.Latencies, 0.99).Round(time.Millisecond/10))

		return rate, err
	}}
}

// perSecond returns the rates in the order of the runs, for ratios to the floor of the same run.
func perSecond(rates []load.Rate) []float64 {
	values := make([]float64, 0, len(rates))
	for _, rate := range rates {
		values = append(values, rate.PerSecond)
	}

	return values
}

// p99 returns the median over the runs of the 99th percentile of the latencies.
func p99(rates []load.Rate) time.Duration {
	return measure.MedianOf(rates, func(rate load.Rate) time.Duration { return measure.Percentile(rate.Latencies, 0.99) })
}
