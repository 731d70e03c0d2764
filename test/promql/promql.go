// Package promql evaluates queries and rules with the Prometheus engine, on samples in memory. Tests use it for alerts and
// dashboards.
package promql

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

const (
	// maxSamples and timeout limit each query, as in Prometheus.
	maxSamples = 10_000_000
	timeout    = time.Minute
)

// sample is a float sample. It implements chunks.Sample. at is in Unix milliseconds.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// series is one time series. Its samples are sorted, oldest first.
type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// Samples holds time series in memory. Samples of one series must be added in chronological order. Samples implements
// storage.Queryable.
type Samples struct {
	series map[uint64]*series
	engine *promql.Engine
}

// New returns an empty set of samples.
func New() *Samples {
	return &Samples{series: map[uint64]*series{}, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: maxSamples, Timeout: timeout, LookbackDelta: 5 * time.Minute, //nolint:mnd // Prometheus' default
		EnableAtModifier: true, EnableNegativeOffset: true,
	})}
}

// Add adds a sample to the series with the given labels, which include the metric name.
func (s *Samples) Add(at time.Time, name labels.Labels, value float64) {
	hash := name.Hash()
	if s.series[hash] == nil {
		s.series[hash] = &series{labels: name}
	}

	s.series[hash].samples = append(s.series[hash].samples, sample{at.UnixMilli(), value})
}

// Scrape adds the metrics in text, which must be in the Prometheus text format. Each metric gets the job and instance labels.
func (s *Samples) Scrape(at time.Time, text []byte, job, instance string) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)

	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("parsing the metrics: %w", err)
	}

	for _, family := range families {
		vector, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.TimeFromUnixNano(at.UnixNano())}, family)
		if err != nil {
			return fmt.Errorf("reading the metrics: %w", err)
		}

		for _, one := range vector {
			builder := labels.NewBuilder(labels.EmptyLabels())
			for name, value := range one.Metric {
				builder.Set(string(name), string(value))
			}

			s.Add(at, builder.Set("job", job).Set("instance", instance).Labels(), float64(one.Value))
		}
	}

	return nil
}

// Query returns the result of a query at the given time. A scalar result is returned as a vector with one sample without labels.
func (s *Samples) Query(ctx context.Context, expression string, at time.Time) (promql.Vector, error) {
	query, err := s.engine.NewInstantQuery(ctx, s, nil, expression, at)
	if err != nil {
		return nil, fmt.Errorf("parsing the query: %w", err)
	}
	defer query.Close()

	result := query.Exec(ctx)
	if result.Err != nil {
		return nil, fmt.Errorf("evaluating the query: %w", result.Err)
	}

	if scalar, err := result.Scalar(); err == nil {
		return promql.Vector{{T: scalar.T, F: scalar.V}}, nil
	}

	vector, err := result.Vector()
	if err != nil {
		return nil, fmt.Errorf("the query returns no vector: %w", err)
	}

	return slices.Clone(vector), nil // the engine reuses the vector
}

// Querier implements storage.Queryable.
func (s *Samples) Querier(from, until int64) (storage.Querier, error) {
	return querier{Querier: storage.NoopQuerier(), samples: s, from: from, until: until}, nil
}

type querier struct {
	storage.Querier

	samples     *Samples
	from, until int64
}

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &seriesSet{at: -1}

	for _, each := range q.samples.series {
		if slices.ContainsFunc(matchers, func(matcher *labels.Matcher) bool { return !matcher.Matches(each.labels.Get(matcher.Name)) }) {
			continue
		}

		first, _ := slices.BinarySearchFunc(each.samples, q.from, func(one chunks.Sample, at int64) int { return cmp.Compare(one.T(), at) })
		last, _ := slices.BinarySearchFunc(each.samples, q.until+1, func(one chunks.Sample, at int64) int { return cmp.Compare(one.T(), at) })

		if first < last {
			found.series = append(found.series, storage.NewListSeries(each.labels, each.samples[first:last]))
		}
	}

	slices.SortFunc(found.series, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })

	return found
}

// seriesSet implements storage.SeriesSet.
type seriesSet struct {
	series []storage.Series
	at     int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.series) } //nolint:nlreturn // one line
func (s *seriesSet) At() storage.Series                { return s.series[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
