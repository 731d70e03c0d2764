package console

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/environment-broker/environment-broker/test/harness"
)

// TestFirstInstance follows the links of an empty console to the commands for a plan, and runs the curl command. The list of
// instances must then lead to the new instance, and so must its dashboard.
func TestFirstInstance(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	b := open(t, f.base)
	b.logInWith(harness.User, harness.Password)
	b.waitText("There are no instances")
	b.click(`#main a[href="/console/catalog"]`)
	b.wait("the catalog", "location.pathname === '/console/catalog'")
	b.click(`a[aria-label="How to order aws"]`)
	b.waitText("Order an instance of aws")
	b.accessible("order page")

	commands := eval[[]string](b, `[...document.querySelectorAll("#main pre")].map(e => e.textContent)`)
	copied := eval[[]string](b, `[...document.querySelectorAll("#main [data-copy]")].map(e => e.dataset.copy)`)

	if len(commands) != 3 || strings.Join(commands, "\n") != strings.Join(copied, "\n") {
		t.Fatalf("the page shows %q and copies %q", commands, copied)
	}

	// Without a password in the command, curl would ask for it on a terminal.
	command := strings.Replace(commands[2], "-u "+harness.User, "-u "+harness.User+":"+harness.Password, 1)

	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), harness.Patience)
	defer cancel()

	output, err := exec.CommandContext(ctx, "sh", "-c", command).Output()
	if err != nil || !strings.Contains(string(output), f.base+"/console/instances/") {
		t.Fatalf("%s\nreturns %s (%v)", command, output, err)
	}

	b.click(`#main a[href="/console/instances"]`)
	b.wait("the list", "location.pathname === '/console/instances'")
	b.click(`#results a[href^="/console/instances/"]`)
	b.waitState("succeeded")
	b.waitText("my-runtime")

	if address := eval[string](b, "location.href"); !strings.Contains(string(output), fmt.Sprintf("%q", address)) {
		t.Errorf("the page of the instance is %s, but the response is %s", address, output)
	}

	own := f.planID("own_cluster")
	b.visit("/console/catalog/" + own)
	b.accessible("order page with required parameters")
	b.waitText("shootDomain")
	b.run(chromedp.Navigate("about:blank"))
}

// planID returns the ID of the named plan in the catalog.
func (f *fixture) planID(name string) string {
	f.Helper()

	services, _ := f.client.Send(http.MethodGet, "/v2/catalog", nil, http.StatusOK).Body["services"].([]any)
	for _, service := range services {
		service, _ := service.(map[string]any)
		plans, _ := service["plans"].([]any)

		for _, plan := range plans {
			plan, _ := plan.(map[string]any)
			if id, _ := plan["id"].(string); plan["name"] == name {
				return id
			}
		}
	}

	f.Fatalf("the catalog has no plan %s", name)

	return ""
}
