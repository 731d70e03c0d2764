package operatorserver

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// pageBudget is the time after which a page of differences ends, so that the response arrives before the request times out.
const pageBudget = 15 * time.Second

// Phase is a part of a comparison: all objects of one kind.
type Phase struct {
	// Name identifies the phase in positions. It must not contain a slash.
	Name string
	// System is the name of the system that the phase reads. It appears in the text that explains why a comparison is incomplete.
	System string
	// Run compares the objects after the given position and adds the differences to the page. If the page is full before all
	// objects are compared, it returns the position at which it stopped, and otherwise an empty position. If the system fails,
	// Run returns an error, and the comparison continues with the next phase.
	Run func(ctx context.Context, after string, page *ComparedPage) (next string, err error)
}

// ComparedPage collects the differences of one page.
type ComparedPage struct {
	// Began is when the comparison of the page began. A difference in an object that has changed since then may be only
	// temporary.
	Began time.Time

	limit    int
	deadline time.Time
	found    Compared
}

// Add adds a difference to the page, even if the page is full.
func (p *ComparedPage) Add(difference operatorapi.Difference) {
	p.found.Differences = append(p.found.Differences, difference)
}

// Incomplete records why a system was not compared, or not completely. Repeated reasons are recorded once.
func (p *ComparedPage) Incomplete(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(p.found.Incomplete, text) {
		p.found.Incomplete = append(p.found.Incomplete, text)
	}
}

// Full reports whether the page must end, because it has enough differences or pageBudget has elapsed.
func (p *ComparedPage) Full() bool {
	return len(p.found.Differences) >= p.limit || time.Now().After(p.deadline)
}

// Left returns how many more differences fit on the page, but at least 1.
func (p *ComparedPage) Left() int { return max(p.limit-len(p.found.Differences), 1) }

// plain matches arguments that need no quotes in a shell.
var plain = regexp.MustCompile(`^[A-Za-z0-9._/:@%+=-]+$`)

// Command returns a command line for a shell. It replaces each %s with one of the arguments, quoted if necessary. Quoting matters
// because platforms choose the IDs, and operators paste the command into a shell.
func Command(format string, args ...string) string {
	quoted := make([]any, 0, len(args))

	for _, arg := range args {
		if !plain.MatchString(arg) {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}

		quoted = append(quoted, arg)
	}

	return fmt.Sprintf(format, quoted...)
}

// Compare runs the phases in order, starting at the position of the request, until the page is full. began is the start of the
// comparison, read from the clock that also sets the times in the rows. Compare returns an error only if the position is invalid,
// the database fails, or the context ends. If another system fails, the comparison is incomplete.
func Compare(ctx context.Context, request Comparison, began time.Time, phases ...Phase) (Compared, error) {
	page := &ComparedPage{Began: began, limit: request.Limit, deadline: time.Now().Add(pageBudget)}
	name, after, _ := strings.Cut(request.After, "/")
	reached := name == ""

	for _, phase := range phases {
		if reached = reached || phase.Name == name; !reached {
			continue
		}

		next, err := phase.Run(ctx, after, page)
		after = ""

		if err != nil {
			if failure.KindOf(err) == failure.Internal || ctx.Err() != nil {
				return Compared{}, err
			}

			page.Incomplete("%s: %s", phase.System, failure.Of(err).ForOperators())
		}

		if next != "" {
			page.found.Next = phase.Name + "/" + next

			return page.found, nil
		}
	}

	if !reached {
		return Compared{}, Invalid("cursor is invalid. Use the cursor of the previous response.")
	}

	return page.found, nil
}
