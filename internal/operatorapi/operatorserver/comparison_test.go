package operatorserver

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func TestCommand(t *testing.T) {
	t.Parallel()

	for _, id := range []string{"i-1", `a"; rm -rf /; "`, "it's $(id)", "a b\nc", ""} {
		output, err := exec.CommandContext(t.Context(), "sh", "-c", Command("printf %%s %s", id)).Output()
		if err != nil || string(output) != id {
			t.Errorf("the shell reads %q as %q, %v", id, output, err)
		}
	}
}

// TestCompare reads the pages of three phases, of which the second fails.
func TestCompare(t *testing.T) {
	t.Parallel()

	count := func(name string) Phase {
		return Phase{Name: name, System: name, Run: func(_ context.Context, after string, page *ComparedPage) (string, error) {
			for _, id := range []string{"1", "2", "3"} {
				if id > after {
					if page.Add(operatorapi.Difference{ID: name + id}); page.Full() {
						return id, nil
					}
				}
			}

			return "", nil
		}}
	}
	broken := Phase{Name: "broken", System: "Gardener", Run: func(context.Context, string, *ComparedPage) (string, error) {
		return "", failure.New(failure.Transient, "it is unreachable")
	}}

	var ids, incomplete []string

	for after := ""; ; {
		page, err := Compare(t.Context(), Comparison{After: after, Limit: 2}, time.Now(), count("a"), broken, count("b"))
		if err != nil {
			t.Fatal(err)
		}

		for _, each := range page.Differences {
			ids = append(ids, each.ID)
		}

		if incomplete = append(incomplete, page.Incomplete...); page.Next == "" {
			break
		}

		after = page.Next
	}

	if diff := cmp.Diff([]string{"a1", "a2", "a3", "b1", "b2", "b3"}, ids); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	if diff := cmp.Diff([]string{"Gardener: it is unreachable"}, incomplete); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	database := Phase{Name: "x", Run: func(context.Context, string, *ComparedPage) (string, error) { return "", errors.New("no database") }}
	if _, err := Compare(t.Context(), Comparison{Limit: 2}, time.Now(), database); err == nil {
		t.Error("an error of the database is not returned")
	}

	if _, err := Compare(t.Context(), Comparison{After: "unknown/1", Limit: 2}, time.Now(), count("a")); err == nil {
		t.Error("an unknown position is accepted")
	}
}
