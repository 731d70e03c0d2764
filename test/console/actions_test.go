package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/test/harness"
)

// do opens the form of an action on the current page, fills in the reason if the form asks for one, and sends it.
func (b browser) do(action string) {
	b.Helper()

	form := fmt.Sprintf(`form[action$="/%s"]`, action)

	b.wait("the action "+action, fmt.Sprintf(`document.querySelector(%q) !== null && (document.querySelector(%[1]q).closest("details").open = true)`, form))

	if eval[bool](b, fmt.Sprintf("document.querySelector(%q) !== null", form+" [name=reason]")) {
		b.act(chromedp.SendKeys(form+" [name=reason]", "because of "+action, chromedp.ByQuery))
	}

	b.click(form + " button")
}

// waitState waits until the badge on the page, which refreshes itself, shows the given state.
func (b browser) waitState(state string) {
	b.Helper()
	b.wait("the state "+state, fmt.Sprintf("document.querySelector('#main .head .badge')?.textContent === %q", state))
}

// wantAudited fails the test unless the audit log contains an entry with the given action, user and text.
func (f *fixture) wantAudited(action, user, text string) {
	f.Helper()

	if got := f.client.Send(http.MethodGet, "/audit?action="+action+"&user="+user, nil, http.StatusOK); !strings.Contains(got.Raw, text) {
		f.Errorf("the audit log has no entry of %s with %q: %s", action, text, got.Raw)
	}
}

// TestRetry retries a failed operation. The page of the new operation must show the operation's end without a reload.
func TestRetry(t *testing.T) {
	t.Parallel()

	f := start(t, time.Second)
	harness.InjectClusterFaults(t, f.Garden, map[string]string{gardenlet.FaultDefault: string(gardenlet.FaultQuota)})
	f.client.Create("one", harness.PlanAWS)

	failed := f.operationOf("one")
	b := open(t, f.base)
	b.logIn(operator)
	b.visit("/console/operations/" + failed)
	b.waitState("failed")
	b.accessible("failed operation")

	harness.InjectClusterFaults(t, f.Garden, nil)
	b.do("retry")
	b.wait("the page of the new operation", fmt.Sprintf("location.pathname.startsWith('/console/operations/') && location.pathname !== %q && document.readyState === 'complete'", "/console/operations/"+failed))
	eval[bool](b, "window.loadedOnce = true")
	b.waitState("succeeded")

	if !eval[bool](b, "window.loadedOnce === true") {
		t.Error("the page was reloaded")
	}

	f.wantAudited("retry", operator, "because of retry")
	b.run(chromedp.Navigate("about:blank"))
}

// TestSkip skips a step of a deletion with a reason, and checks that viewers cannot skip it.
func TestSkip(t *testing.T) {
	t.Parallel()

	f := start(t, 0)
	f.client.Create("one", harness.PlanAWS)
	f.client.WaitForEnd("one")

	reconnect := f.Proxy.Inject(harness.Match{}, harness.Disconnect)
	defer reconnect()

	f.client.Delete("one", harness.PlanAWS)

	operation := f.operationOf("one")

	reader := open(t, f.base)
	reader.logIn(viewer)
	reader.visit("/console/operations/" + operation)
	reader.waitText("Interventions need the operator role.")

	if eval[bool](reader, `document.querySelector("#main form") !== null`) {
		t.Error("the page offers an action to a viewer")
	}

	b := open(t, f.base)
	b.logIn(operator)
	b.visit("/console/operations/" + operation)
	b.do("skip")
	b.waitState("succeeded")
	b.waitText("Remove_Runtime")
	b.accessible("deletion with a skipped step")

	f.wantAudited("skip", operator, "because of skip")

	for _, each := range []browser{b, reader} {
		each.run(chromedp.Navigate("about:blank"))
		each.taken()
	}
}

// TestOrchestrationOfConsole applies a planned orchestration, pauses, resumes and cancels it, and retries its failed targets. The
// progress bars must follow without a reload.
func TestOrchestrationOfConsole(t *testing.T) {
	t.Parallel()

	f := start(t, 0)
	for _, id := range []string{"one", "two", "three"} {
		f.client.Create(id, harness.PlanAWS)
		f.client.WaitForEnd(id)
	}

	order := map[string]any{
		"targets":    map[string]any{"include": []any{map[string]any{"target": "all"}}},
		"strategy":   map[string]any{"type": "parallel", "schedule": "immediate", "parallel": map[string]any{"workers": 1}},
		"kubernetes": map[string]any{"kubernetesVersion": "1.36.3"},
	}
	planned := f.client.Send(http.MethodPost, "/upgrade/cluster/plan", order, http.StatusCreated).Text("orchestrationID")

	b := open(t, f.base)
	b.logIn(operator)
	b.visit("/console/orchestrations")
	b.click(fmt.Sprintf("a[href=%q]", "/console/orchestrations/"+planned))
	b.waitState("planned")
	b.accessible("planned orchestration")

	// The first upgrade is stuck, so that the others wait for it.
	harness.InjectClusterFaults(t, f.Garden, harness.StuckClusters())
	b.do("apply")
	b.waitState("in progress")
	b.do("pause")
	b.waitState("paused")
	b.accessible("paused orchestration")
	b.do("resume")
	b.waitState("in progress")

	harness.InjectClusterFaults(t, f.Garden, map[string]string{gardenlet.FaultDefault: string(gardenlet.FaultQuota)})
	b.waitState("failed")
	b.wait("the failed targets", `[...document.querySelectorAll("#orchestration .progress .line")].every(e => e.textContent.includes("3 failed"))`)

	harness.InjectClusterFaults(t, f.Garden, nil)
	b.do("retry")
	b.waitState("succeeded")
	b.wait("the full bar", `[...document.querySelectorAll("#orchestration progress")].every(e => e.value === 100)`)

	for _, action := range []string{"apply", "pause", "resume", "retry"} {
		f.wantAudited(action, operator, planned)
	}

	discarded := f.client.Send(http.MethodPost, "/upgrade/cluster/plan", order, http.StatusCreated).Text("orchestrationID")
	b.visit("/console/orchestrations/" + discarded)
	b.do("cancel")
	b.waitState("canceled")
	f.wantAudited("cancel", operator, discarded)
	b.run(chromedp.Navigate("about:blank"))
}

// TestCancelRunningOrchestration cancels an orchestration whose first target is being upgraded. Without a reload, the page must
// show that the other targets are canceled and, after the running upgrade has ended, that the orchestration has ended.
func TestCancelRunningOrchestration(t *testing.T) {
	t.Parallel()

	f := start(t, 0)
	for _, id := range []string{"one", "two", "three"} {
		f.client.Create(id, harness.PlanAWS)
		f.client.WaitForEnd(id)
	}

	harness.InjectClusterFaults(t, f.Garden, harness.StuckClusters())

	id := f.client.Send(http.MethodPost, "/upgrade/cluster", map[string]any{
		"targets":    map[string]any{"include": []any{map[string]any{"target": "all"}}},
		"strategy":   map[string]any{"type": "parallel", "schedule": "immediate", "parallel": map[string]any{"workers": 1}},
		"kubernetes": map[string]any{"kubernetesVersion": "1.36.3"},
	}, http.StatusAccepted).Text("orchestrationID")
	states := func(want string) string {
		return fmt.Sprintf(`[...document.querySelectorAll("#orchestration tbody .badge")].map(e => e.textContent).sort().join() === %q`, want)
	}

	b := open(t, f.base)
	b.logIn(operator)
	b.visit("/console/orchestrations/" + id)
	b.wait("the running upgrade", states("in progress,pending,pending"))
	b.do("cancel")
	b.waitState("canceling")
	b.wait("the loaded page", "document.readyState === 'complete'")
	eval[bool](b, "window.loadedOnce = true")
	b.wait("the canceled targets", states("canceled,canceled,in progress"))
	b.accessible("canceled orchestration with a running upgrade")

	if eval[bool](b, `document.querySelector("#orchestration form") !== null`) {
		t.Error("the page offers to change an orchestration that is being canceled")
	}

	harness.InjectClusterFaults(t, f.Garden, nil)
	b.waitState("canceled")
	b.wait("the end of the running upgrade", states("canceled,canceled,succeeded"))

	if !eval[bool](b, "window.loadedOnce === true") {
		t.Error("the page was reloaded")
	}

	f.wantAudited("cancel", operator, id)
	b.run(chromedp.Navigate("about:blank"))
}
