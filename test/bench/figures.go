package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// figure is a named group of measurements.
type figure struct {
	name    string
	measure func(ctx context.Context, s *scope) ([]line, error)
}

// figures returns all figures in the order of the page.
func figures() []figure {
	return []figure{
		{name: "accept", measure: measureAccept},
		{name: "last_operation", measure: measureLastOperation},
		{name: "catalog", measure: measureCatalog},
		{name: "throughput", measure: measureThroughput},
		{name: "pickup", measure: measurePickUp},
		{name: "waiting", measure: measureWaiting},
		{name: "crowd", measure: measureCrowd},
		{name: "killed", measure: measureKilled},
		{name: "finished", measure: measureFinished},
		{name: "idle", measure: measureIdle},
		{name: "runtimes", measure: measureRuntimes},
	}
}

// chosen returns the named figures (comma-separated) in the order of the page, or all if names is empty.
func chosen(names string) ([]figure, error) {
	all := figures()
	if names == "" {
		return all, nil
	}

	wanted := strings.Split(names, ",")

	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(known figure) bool { return known.name == name }) {
			return nil, fmt.Errorf("there is no figure %q: use %s", name, knownNames(all))
		}
	}

	return slices.DeleteFunc(all, func(known figure) bool { return !slices.Contains(wanted, known.name) }), nil
}

func knownNames(figures []figure) string {
	names := make([]string, 0, len(figures))
	for _, figure := range figures {
		names = append(names, figure.name)
	}

	return strings.Join(names, ", ")
}
