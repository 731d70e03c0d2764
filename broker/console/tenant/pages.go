package tenant

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/environment-broker/environment-broker/broker/console/session"
	"github.com/environment-broker/environment-broker/broker/console/views"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// listed is the maximum number of instances on a page of the home page's list. shown is the maximum number of past operations on an
// instance's page.
const listed, shown = 100, 10

// page writes a page in the console's layout. It omits the navigation, whose links lead to operator pages.
func (p *Pages) page(w http.ResponseWriter, r *http.Request, status int, page views.Page) {
	page.Shell = views.Shell{Theme: views.Theme(r), Version: p.version}

	if session.FromContext(r.Context()).CanLogOut {
		page.Shell.User, page.Shell.CanLogOut = auth.FromContext(r.Context()).Name, true
	}

	views.Render(w, r, status, page)
}

// problem writes a page with an error message.
func (p *Pages) problem(w http.ResponseWriter, r *http.Request, status int, title, text string) {
	p.page(w, r, status, views.Page{Title: title, Body: views.Message(title, text, session.Home, "Back to the home page")})
}

// showHome shows a page of the instances of the user's accounts, newest first. It does not list instances that the user only
// administers, because the database cannot search for administrators: their names are encrypted. The user opens these instances by
// their links.
func (p *Pages) showHome(w http.ResponseWriter, r *http.Request) {
	accounts := slices.DeleteFunc(slices.Clone(session.FromContext(r.Context()).Tenant.Accounts), func(account string) bool { return account == "" })
	filter := instances.Filter{GlobalAccountIDs: accounts, Limit: listed + 1}
	content := views.TenantHome{}

	if text := r.URL.Query().Get("cursor"); text != "" {
		cursor, valid := storage.ParseCursor(text)
		if !valid || cursor.Sort != "" {
			p.problem(w, r, http.StatusBadRequest, "Not available", textCursor)

			return
		}

		filter.Before, filter.BeforeID, content.Pager.First = cursor.At, cursor.ID, session.Home
	}

	var found []instances.Listed

	// A filter without accounts would select all instances.
	if len(filter.GlobalAccountIDs) > 0 {
		var err error
		if found, err = p.Instances.List(r.Context(), filter); err != nil {
			p.fail(w, r, err)

			return
		}
	}

	if len(found) > listed {
		found = found[:listed]
		content.Pager.Next = session.Home + "?cursor=" + filter.After(found[listed-1].Instance).Cursor().String()
	}

	for _, each := range found {
		content.Instances = append(content.Instances, views.TenantLink{Address: Address(each.Instance.ID), Text: each.Instance.Name})
	}

	content.Pager.Count, content.Pager.Total = len(found), -1

	p.page(w, r, http.StatusOK, views.Page{Title: "Instances", Body: views.TenantHomePage(content)})
}

// Address returns the path of an instance's page.
func Address(instanceID string) string {
	return session.Home + "instances/" + url.PathEscape(instanceID)
}

// showInstance shows an instance with its running operation and its history.
func (p *Pages) showInstance(w http.ResponseWriter, r *http.Request) {
	instance, err := p.owned(r)
	if err != nil {
		p.fail(w, r, err)

		return
	}

	past, err := p.Operations.OfInstance(r.Context(), p.DB.Reader(), instance.ID)
	if err != nil {
		p.fail(w, r, err)

		return
	}

	// Earlier operations belong to a deleted instance with the same ID, which may have had another owner.
	past = slices.DeleteFunc(past, func(record process.Record) bool { return record.CreatedAt.Before(instance.CreatedAt) })

	phase := environment.PhaseOf(past)
	content := views.TenantInstance{
		Name: instance.Name, State: stateOf(instance, phase), Plan: instance.PlanName, Region: instance.Region, ID: instance.ID,
		Address:    Address(instance.ID),
		Kubernetes: instance.Request.Cluster.KubernetesVersion, Created: instance.CreatedAt, Expires: instance.ExpiresAt, Expired: instance.ExpiredAt,
		Now: p.Clock.Now(),
	}

	if phase == environment.Active && instance.RuntimeID != "" && instance.Request.Cluster.Own == nil {
		content.Kubeconfig = Address(instance.ID) + "/kubeconfig"
	}

	for _, record := range past {
		if !slices.Contains(environment.Kinds(), record.Kind) {
			continue // not an operation on the instance itself
		}

		view := p.operation(record, instance.PlanID)

		switch {
		case record.State.Terminal() && len(content.Past) < shown:
			content.Past = append(content.Past, view)
		case !record.State.Terminal():
			content.Current, content.Refresh = &view, p.pace.interval(r, content.Now) // the oldest unfinished operation, which is last here, is running
		}
	}

	p.page(w, r, http.StatusOK, views.Page{Title: instance.Name, Body: views.TenantInstancePage(content)})
}

// stateOf returns the state of an instance for users: its phase, or that it has expired. An expired instance can only be deleted, so that its
// deletion is the only operation that matters more.
func stateOf(instance environment.Instance, phase environment.Phase) string {
	switch {
	case phase == environment.Deleting || phase == environment.DeletionFailed:
		return string(phase)
	case instance.Expired():
		return "expired"
	case instance.Suspended && (phase == environment.Active || phase == environment.Unknown): // the suspension is not among the operations
		return string(environment.Suspended)
	default:
		return string(phase)
	}
}

func (p *Pages) operation(record process.Record, plan string) views.TenantOperation {
	text, percent := p.Describe(record, plan)

	return views.TenantOperation{
		Name: names()[record.Kind], State: string(record.State), Text: text, Percent: percent,
		Started: record.CreatedAt, Ended: record.FinishedAt, Failed: record.State == process.Failed,
	}
}

// names maps each operation kind to the name that users see.
func names() map[string]string {
	return map[string]string{
		environment.KindProvision: "Creation", environment.KindUpdate: "Change", environment.KindDeprovision: "Deletion",
		environment.KindSuspend: "Suspension", environment.KindResume: "Resumption",
		environment.KindUpgradeKyma: "Upgrade of Kyma", environment.KindUpgradeCluster: "Upgrade of the cluster",
	}
}
