package main

import (
	"context"
	"encoding/json"
	"fmt"
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

// amongFinished has the measurements of one run: memory in bytes, and the median latencies of the first page and of one in the middle.
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

	runs, err := repeat(s, "finished", func(s *scope) (amongFinished, error) {
		run, err := s.among(ctx, filled)
		s.progress("finished: started in %s with %s, pages in %s and %s", run.start, mebibytes(run.memory), run.first, run.middle)

		return run, err
	})
	if err != nil {
		return nil, err
	}

	start := measure.MedianOf(runs, func(run amongFinished) time.Duration { return run.start })
	memory := measure.MedianOf(runs, func(run amongFinished) int64 { return run.memory })
	first := measure.MedianOf(runs, func(run amongFinished) time.Duration { return run.first })
	middle := measure.MedianOf(runs, func(run amongFinished) time.Duration { return run.middle })

	return []line{
		target("start to ready with 100,000 finished operations", inMilliseconds(start), "≤ 150 ms", start <= startLimit),
		target("the same: resident memory when ready, at its peak", mebibytes(memory), "≤ 70 MiB", memory <= startMemoryLimit),
		target("list 100 of 100,000 instances, first page: p50", inMilliseconds(first), "≤ 10 ms", first <= listLimit),
		target("the same, a page in the middle: p50", inMilliseconds(middle), "≤ 10 ms", middle <= listLimit),
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

	if run.first, err = s.fetch(ctx, first); err != nil {
		return amongFinished{}, err
	}

	run.middle, err = s.fetch(ctx, first+"&cursor="+list.Cursor)

	return run, err
}

// fetch fetches a page repeatedly with one client, at most pages times within while, and returns the median latency.
func (s *scope) fetch(ctx context.Context, url string) (time.Duration, error) {
	generator := load.New(1)
	defer generator.Close()

	request := gets(url)(0)
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
