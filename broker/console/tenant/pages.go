package tenant

import (
	_ "embed"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/broker/console/session"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/instances"
)

const (
	// listed is the maximum number of instances of an account on the first page. shown is the maximum number of operations on the
	// page of an instance.
	listed, shown = 100, 10
	// refreshSeconds is the interval at which the page of an instance refreshes itself while an operation is running.
	refreshSeconds = 2
)

var (
	//go:embed home.html
	homeHTML string
	//go:embed instance.html
	instanceHTML string
	//go:embed problem.html
	problemHTML string
)

// page contains the fields that all pages have. User is empty if the client is not logged in.
type page struct{ Title, User string }

func (p *Pages) page(r *http.Request, title string) page {
	made := page{Title: title}
	if session.FromContext(r.Context()).CanLogOut {
		made.User = auth.FromContext(r.Context()).Name
	}

	return made
}

type problemPage struct {
	page

	Problem string
}

type homePage struct {
	page

	Instances []link
}

type link struct{ Address, Text string }

// showHome lists the instances of the user's accounts. It cannot list the instances that the user administers, because the names
// of administrators are encrypted in the database. Users open these by their links.
func (p *Pages) showHome(w http.ResponseWriter, r *http.Request) {
	content := homePage{page: p.page(r, "Instances")}

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
			content.Instances = append(content.Instances, link{Address(each.Instance.ID), each.Instance.Name})
		}
	}

	p.home.Write(w, r, http.StatusOK, content)
}

// Address returns the path of the page of an instance.
func Address(instanceID string) string {
	return session.Home + "instances/" + url.PathEscape(instanceID)
}

type instancePage struct {
	page

	State, Plan, Region, Kubernetes, ID string
	Created, Expires                    string
	Suspended, Expired                  bool
	// Kubeconfig is the URL of the kubeconfig, or empty if there is none.
	Kubeconfig string
	// Current is the running operation, or nil.
	Current *operationView
	Past    []operationView
	// Refresh is the refresh interval of the page in seconds, or 0.
	Refresh int
}

type operationView struct {
	Name, State, Text, Started, Ended string
	Percent                           int
	Failed                            bool
}

// showInstance shows an instance and its operations.
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
	content := instancePage{
		page: p.page(r, instance.Name), State: string(phase), Plan: instance.PlanName, Region: instance.Region, ID: instance.ID,
		Kubernetes: instance.Request.Cluster.KubernetesVersion, Created: date(instance.CreatedAt), Expires: date(instance.ExpiresAt),
		Expired: instance.Expired(), Suspended: instance.Suspended,
	}

	if phase == environment.Active && instance.RuntimeID != "" && instance.Request.Cluster.Own == nil {
		content.Kubeconfig = Address(instance.ID) + "/kubeconfig"
	}

	for _, record := range past {
		if !slices.Contains(environment.Kinds(), record.Kind) {
			continue // an operation on a binding
		}

		view := p.operation(record, instance.PlanID)

		switch {
		case record.State.Terminal() && len(content.Past) < shown:
			content.Past = append(content.Past, view)
		case !record.State.Terminal():
			content.Current, content.Refresh = &view, refreshSeconds // the oldest one is running, later ones are waiting
		}
	}

	p.instance.Write(w, r, http.StatusOK, content)
}

func (p *Pages) operation(record process.Record, plan string) operationView {
	text, percent := p.Describe(record, plan)

	return operationView{
		Name: names()[record.Kind], State: string(record.State), Text: text, Percent: percent,
		Started: date(record.CreatedAt), Ended: date(record.FinishedAt),
		Failed: record.State == process.Failed,
	}
}

// names returns the names of operations for users, by kind.
func names() map[string]string {
	return map[string]string{
		environment.KindProvision: "Creation", environment.KindUpdate: "Change", environment.KindDeprovision: "Deletion",
		environment.KindSuspend: "Suspension", environment.KindResume: "Resumption",
		environment.KindUpgradeKyma: "Upgrade of Kyma", environment.KindUpgradeCluster: "Upgrade of the cluster",
	}
}

// date formats a time for users, or returns an empty text for the zero time.
func date(at time.Time) string {
	if at.IsZero() {
		return ""
	}

	return at.UTC().Format("2006-01-02 15:04 UTC")
}
