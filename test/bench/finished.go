package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/measure"
	"github.com/environment-broker/environment-broker/test/bench/program"
)

const (
	manyFinished = 100_000
	pageSize     = 100
	middlePage   = manyFinished / pageSize / 2
	pages        = 200

	startLimit       = 150 * time.Millisecond
	startMemoryLimit = 70 * program.MiB
	listLimit        = 10 * time.Millisecond
)

// amongFinished has the measurements with many instances.
type amongFinished struct {
	start         time.Duration
	memory        int64
	first, middle time.Duration
}

// measureFinished measures a broker with many ready instances: its start, memory and lists.
func measureFinished(ctx context.Context, s *scope) ([]line, error) {
	filled, err := s.fill(ctx, manyFinished, true)
	if err != nil {
		return nil, err
	}

	runs, err := measure.InTurn(s.runs, measure.Subject[amongFinished]{Name: "finished", Run: func() (run amongFinished, err error) {
		err = s.scoped(func(s *scope) error {
			run, err = s.among(ctx, filled)

			return err
		})
		s.progress("finished: started in %s with %s, pages in %s and %s", run.start, mebibytes(run.memory), run.first, run.middle)

		return run, err
	}})
	if err != nil {
		return nil, err
	}

	var (
		starts, firsts, middles []time.Duration
		memories                []int64
	)

	for _, run := range runs["finished"] {
		starts, memories = append(starts, run.start), append(memories, run.memory)
		firsts, middles = append(firsts, run.first), append(middles, run.middle)
	}

	return []line{
		{
			what: "start to ready with 100,000 finished operations", measured: inMilliseconds(starts), must: "≤ 150 ms",
			reached: verdict(measure.Median(starts) <= startLimit),
		},
		{
			what: "the same: resident memory when ready, at its peak", measured: mebibytes(measure.Median(memories)), must: "≤ 70 MiB",
			reached: verdict(measure.Median(memories) <= startMemoryLimit),
		},
		{
			what: "list 100 of 100,000 instances, first page: p50", measured: inMilliseconds(firsts), must: "≤ 10 ms",
			reached: verdict(measure.Median(firsts) <= listLimit),
		},
		{
			what: "the same, a page in the middle: p50", measured: inMilliseconds(middles), must: "≤ 10 ms",
			reached: verdict(measure.Median(middles) <= listLimit),
		},
	}, nil
}

// among starts the broker and measures start, memory and two pages of the list.
func (s *scope) among(ctx context.Context, filled filled) (amongFinished, error) {
	if err := s.startBrokerAgain(ctx, &filled.env); err != nil {
		return amongFinished{}, err
	}

	memory, err := filled.broker.Memory()
	if err != nil {
		return amongFinished{}, err
	}

	run := amongFinished{start: filled.broker.StartTook, memory: memory.Peak}

	first := fmt.Sprintf("%s/runtimes?page_size=%d", filled.broker.url, pageSize)

	// The cursor of the previous page leads to the middle page.
	before, err := s.once(ctx, gets(fmt.Sprintf("%s&page=%d", first, middlePage))(0))
	if err != nil {
		return amongFinished{}, err
	}

	var list operatorapi.RuntimeList
	if err := json.Unmarshal(before.Body, &list); err != nil {
		return amongFinished{}, fmt.Errorf("reading a page: %w", err)
	}

	if len(list.Data) != pageSize || list.Cursor == "" {
		return amongFinished{}, fmt.Errorf("page %d has %d instances and the cursor %q", middlePage, len(list.Data), list.Cursor)
	}

	if run.first, err = s.turn(ctx, first); err != nil {
		return amongFinished{}, err
	}

	run.middle, err = s.turn(ctx, first+"&cursor="+list.Cursor)

	return run, err
}

// turn fetches a page repeatedly with one client and returns the median latency.
func (s *scope) turn(ctx context.Context, url string) (time.Duration, error) {
	generator := load.New(1)
	defer generator.Close()

	request := load.Request{Method: http.MethodGet, URL: url, Header: header(), Want: http.StatusOK}
	end := time.Now().Add(while)

	var took []time.Duration

	for len(took) == 0 || len(took) < pages && time.Now().Before(end) {
		answer, err := generator.Send(ctx, request)
		if err != nil {
			return 0, err
		}

		took = append(took, answer.Took)
	}

	return measure.Median(took), nil
}
