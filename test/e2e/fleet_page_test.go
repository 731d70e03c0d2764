package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/test/harness"
)

// The page shows these values in place of values that differ in each run.
const (
	pageOrchestration = "19aaa52c-bc9d-4f1f-bd94-d1e55f179557"
	pageOperation     = "7d0c9b52-3f43-4c0e-8a5f-4f3f0f6d2b1e"
)

// pageStart is the time of all events on the page, except those that are at least a day away.
var pageStart = time.Date(2026, time.November, 30, 9, 0, 0, 0, time.UTC)

// TestOutputOfFleetPage runs the runbook in docs/operator/fleets.md and compares the output of its commands with the page. With the
// -update flag, it writes the output to the page. The canary soaks for seconds in the test, and for a day on the page.
func TestOutputOfFleetPage(t *testing.T) {
	t.Parallel()

	const soak = "20s"

	e := start(t, harness.SQLite, 200*time.Millisecond)
	replaced := []string{soak + " of soak time", "24h of soak time"}

	instances := []string{
		"2c6222c0-7bd1-4c36-9d3e-5a0f7c1b9e44", "530f49ad-1f0b-4d6c-8a0e-c1d2a7b43f10",
		"8a1b6d57-64a9-4f0d-b6f4-0e6f2b7c9d31", "c9e0f3a2-5d7b-4a8e-9c1f-7b3d5e2a6f08",
	}
	for number, id := range instances {
		order := harness.Order(harness.PlanAWS)
		order["context"] = map[string]any{"instance_name": "shop-" + string(rune('1'+number)), "globalaccount_id": "shop"}
		e.Send(http.MethodPut, harness.InstancePath(id)+harness.Incomplete, order, http.StatusAccepted)
		e.WaitForEnd(id)

		replaced = append(replaced, e.runtime(id).ShootName, "c-"+id[:7])
	}

	page := newListings(t, "docs/operator/fleets.md", nil)
	page.arguments["ring=canary:24h"] = "ring=canary:" + soak

	run := func(args []string) string {
		return shownOnPage(t, strings.NewReplacer(replaced...).Replace(e.ebctl(args...)))
	}

	page.want("ebctl instance label", run)

	page.want("ebctl upgrade plan", func(args []string) string {
		output := e.ebctl(args...)

		var planned operatorapi.OrchestrationList

		e.decode(e.ebctl("orchestration", "list", "-o", "json"), &planned)
		replaced = append(replaced, planned.Data[0].OrchestrationID, pageOrchestration)
		page.arguments[pageOrchestration] = planned.Data[0].OrchestrationID

		return shownOnPage(t, strings.NewReplacer(replaced...).Replace(output))
	})

	await := func(state string) {
		e.Until(state, func() bool {
			return strings.Contains(e.ebctl("orchestration", "get", page.arguments[pageOrchestration]), state)
		})
	}
	garden := e.services.Garden

	// Of the first two upgrades in the second wave, one fails, and the other one ends only after the gate has closed.
	failing := map[string]string{
		e.runtime(instances[1]).ShootName: string(gardenlet.FaultStuck), e.runtime(instances[2]).ShootName: string(gardenlet.FaultQuota),
	}
	harness.InjectClusterFaults(t, garden, failing)
	page.want("ebctl upgrade apply", run)
	await("soaks until")
	page.want("ebctl orchestration explain", run)
	await("gated")
	harness.InjectClusterFaults(t, garden, nil)
	await("2 succeeded, 1 failed, 1 pending")
	page.want("ebctl orchestration get "+pageOrchestration, run)
	page.want("ebctl orchestration targets "+pageOrchestration+" --state failed", run)

	page.want("ebctl orchestration retry", run)
	e.ebctl("orchestration", "resume", page.arguments[pageOrchestration])
	await("4 succeeded")
	page.want("ebctl orchestration targets "+pageOrchestration+" --state succeeded,failed,canceled", run)
}

// shownOnPage replaces the operation IDs and the times in an output with those on the page. A soak time ends a day after
// pageStart, and a plan expires after seven days.
func shownOnPage(t *testing.T, output string) string {
	t.Helper()

	id := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	known := regexp.MustCompile(`^(2c6222c0|530f49ad|8a1b6d57|c9e0f3a2|19aaa52c)-`)
	moment := regexp.MustCompile(`(begins at |soaks until )?(20\d\d-\d\d-\d\d)([ T])(\d\d:\d\d:\d\d)Z`)

	output = id.ReplaceAllStringFunc(output, func(found string) string {
		if known.MatchString(found) {
			return found
		}

		return pageOperation
	})

	return moment.ReplaceAllStringFunc(output, func(found string) string {
		parts := moment.FindStringSubmatch(found)

		at, err := time.Parse(time.DateTime, parts[2]+" "+parts[4])
		if err != nil {
			t.Fatal(err)
		}

		const day = 24 * time.Hour

		shown := pageStart.AddDate(0, 0, int(time.Until(at).Round(day)/day))
		if parts[1] != "" {
			shown = pageStart.AddDate(0, 0, 1)
		}

		return parts[1] + strings.ReplaceAll(shown.Format(time.DateTime), " ", parts[3]) + "Z"
	})
}
