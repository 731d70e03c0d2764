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
	"github.com/environment-broker/environment-broker/storage/instances"
)

// listed is the maximum number of instances per account on the home page. shown is the maximum number of past operations on an
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

// showHome lists the instances of the user's accounts. It does not list instances that the user only administers, because the
// database cannot search for administrators: their names are encrypted. The user opens these instances by their links.
func (p *Pages) showHome(w http.ResponseWriter, r *http.Request) {
	var links []views.TenantLink

	for _, account := range session.FromContext(r.Context()).Tenant.Accounts {
		if account == "" {
			continue // an empty filter would select all instances
		}

		found, err := p.Instances.List(r.Context(), instances.Filter{GlobalAccountID: account, Limit: listed})
		if err != nil {
			p.fail(w, r, err)

			return
		}

		for _, each := range found {
			links = append(links, views.TenantLink{Address: Address(each.Instance.ID), Text: each.Instance.Name})
		}
	}

	p.page(w, r, http.StatusOK, views.Page{Title: "Instances", Body: views.TenantHome(links)})
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

	phase := environment.PhaseOf(past)
	content := views.TenantInstance{
		Name: instance.Name, State: string(phase), Plan: instance.PlanName, Region: instance.Region, ID: instance.ID, Address: Address(instance.ID),
		Kubernetes: instance.Request.Cluster.KubernetesVersion, Created: instance.CreatedAt, Expires: instance.ExpiresAt, Now: p.Clock.Now(),
	}

	switch {
	case instance.Expired():
		content.State = "expired"
	case instance.Suspended:
		content.State = "suspended"
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
