package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// figure is something that is measured.
type figure struct {
	name    string
	measure func(ctx context.Context, s *scope) ([]line, error)
}

// figures are all that can be measured, in the order of the page.
func figures() []figure {
	return []figure{
		{name: "accept", measure: measureAccept},
		{name: "last_operation", measure: measureLastOperation},
		{name: "catalog", measure: measureCatalog},
	}
}

// chosen are the figures with the names, comma-separated. Without a name it is all of them.
func chosen(names string) ([]figure, error) {
	all := figures()
	if names == "" {
		return all, nil
	}

	var found []figure

	for name := range strings.SplitSeq(names, ",") {
		at := slices.IndexFunc(all, func(known figure) bool { return known.name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no figure %q: use %s", name, knownNames(all))
		}

		found = append(found, all[at])
	}

	return found, nil
}

func knownNames(figures []figure) string {
	names := make([]string, 0, len(figures))
	for _, figure := range figures {
		names = append(names, figure.name)
	}

	return strings.Join(names, ", ")
}
