package promql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
)

// Rules holds recording and alerting rules and evaluates them as Prometheus does. The rules of a group run in order. An alert
// fires once its expression has returned the same series at every evaluation for the alert's "for" duration.
type Rules struct {
	Samples *Samples

	groups []rulefmt.RuleGroup
	// pending contains the time since which each alert has been active, keyed by the alert's name and labels.
	pending map[string]time.Time
}

// Load parses and validates the content of a rule file, including the templates in its annotations.
func Load(content []byte, samples *Samples) (*Rules, error) {
	parsed, problems := rulefmt.Parse(content, false, model.UTF8Validation)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}

	return &Rules{Samples: samples, groups: parsed.Groups, pending: map[string]time.Time{}}, nil
}

// All returns the rules of all groups, in the order of the file.
func (r *Rules) All() []rulefmt.Rule {
	var all []rulefmt.Rule
	for _, group := range r.groups {
		all = append(all, group.Rules...)
	}

	return all
}

// Evaluate evaluates the rules of one group at the given time, and returns the names of the firing alerts.
func (r *Rules) Evaluate(ctx context.Context, group string, at time.Time) ([]string, error) {
	var firing []string

	index := slices.IndexFunc(r.groups, func(one rulefmt.RuleGroup) bool { return one.Name == group })
	if index < 0 {
		return nil, fmt.Errorf("there is no group %s", group)
	}

	active := map[string]bool{}

	for _, rule := range r.groups[index].Rules {
		vector, err := r.Samples.Query(ctx, rule.Expr, at)
		if err != nil {
			return nil, fmt.Errorf("rule %s%s: %w", rule.Record, rule.Alert, err)
		}

		for _, one := range vector {
			if rule.Record != "" {
				r.Samples.Add(at, labels.NewBuilder(one.Metric).Set(model.MetricNameLabel, rule.Record).Labels(), one.F)

				continue
			}

			key := rule.Alert + one.Metric.String()
			active[key] = true

			if _, found := r.pending[key]; !found {
				r.pending[key] = at
			}

			if at.Sub(r.pending[key]) >= time.Duration(rule.For) && !slices.Contains(firing, rule.Alert) {
				firing = append(firing, rule.Alert)
			}
		}
	}

	for key := range r.pending {
		if !active[key] {
			delete(r.pending, key)
		}
	}

	return firing, nil
}
