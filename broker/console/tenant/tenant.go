package tenant

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/gorilla/mux"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/console/session"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// codeOtherTenant is the code in audit entries about requests for an instance of another tenant. The response does not reveal
// that the instance exists.
const codeOtherTenant = "OtherTenant"

// Messages for users.
const (
	textNotFound    = "This page does not exist, or you may not see it."
	textCursor      = "This page of the list does not exist. Start with the first page."
	textUnavailable = "The page cannot be shown at the moment. Try again later."
)

// Instances reads instances; *instances.Store implements it.
type Instances interface {
	Get(ctx context.Context, tx storage.Tx, id string) (environment.Instance, error)
	List(ctx context.Context, filter instances.Filter) ([]instances.Listed, error)
}

// Operations reads the operations of instances; *operations.Store implements it.
type Operations interface {
	OfInstance(ctx context.Context, tx storage.Tx, instanceID string) ([]process.Record, error)
}

// Options are the dependencies of the pages. All fields are required.
type Options struct {
	DB         *storage.DB
	Instances  Instances
	Operations Operations
	// Describe returns the description of an operation for users, and the percentage of its work that is done, or 0 if that is
	// unknown. plan is the plan ID of the instance.
	Describe func(record process.Record, plan string) (text string, percent int)
	// Kubeconfig returns the kubeconfig of an instance for users. It contains no credentials.
	Kubeconfig func(ctx context.Context, instanceID string) ([]byte, error)
	Clock      clock.PassiveClock
	Log        logrus.FieldLogger
}

// Pages serves the tenant pages. It is safe for concurrent use.
type Pages struct {
	Options

	version string
	pace    pace
}

// New returns the handler of the pages. It does not authenticate clients, so session.Sessions.Handler must wrap it.
func New(options Options) http.Handler {
	pages := &Pages{Options: options, version: program.ReadBuild().Version}

	router := mux.NewRouter().UseEncodedPath().SkipClean(true)
	router.NotFoundHandler = http.HandlerFunc(pages.notFound)
	router.Use(httpserver.Trace)

	for path, serve := range map[string]http.HandlerFunc{
		session.Home:                                        pages.showHome,
		session.Home + "instances/{instance_id}":            pages.showInstance,
		session.Home + "instances/{instance_id}/kubeconfig": pages.download,
	} {
		router.Handle(path, httpserver.Methods{http.MethodGet: serve})
	}

	return router
}

// owned returns the instance that the request path names, if the user may see it. Otherwise it returns storage.ErrNotFound. If
// the instance belongs to another tenant, owned marks the request for the audit log.
func (p *Pages) owned(r *http.Request) (environment.Instance, error) {
	ctx := r.Context()

	id, err := url.PathUnescape(mux.Vars(r)["instance_id"])
	if err != nil || !storage.IsText(id) || len(id) > bounds.ID {
		return environment.Instance{}, storage.ErrNotFound
	}

	httpserver.Note(ctx, logging.InstanceID, id)

	instance, err := p.Instances.Get(ctx, p.DB.Reader(), id)
	if err != nil {
		return environment.Instance{}, err //nolint:wrapcheck // the caller adds the context
	}

	if auth.FromContext(ctx).Has(auth.RoleViewer) ||
		session.FromContext(ctx).Tenant.Owns(instance.GlobalAccountID, instance.Request.Cluster.Administrators) {
		return instance, nil
	}

	audit.Mark(ctx, codeOtherTenant)

	return environment.Instance{}, storage.ErrNotFound
}

// download sends the instance's kubeconfig as a file.
func (p *Pages) download(w http.ResponseWriter, r *http.Request) {
	instance, err := p.owned(r)
	if err != nil {
		p.fail(w, r, err)

		return
	}

	content, err := p.Kubeconfig(r.Context(), instance.ID)
	if err != nil {
		p.fail(w, r, err)

		return
	}

	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Content-Disposition", `attachment; filename="kubeconfig.yaml"`)
	_, _ = w.Write(content) // an error means that the client has disconnected
}

func (p *Pages) notFound(w http.ResponseWriter, r *http.Request) {
	p.problem(w, r, http.StatusNotFound, "Not found", textNotFound)
}

// fail responds with an error page. It responds to a missing instance and a missing kubeconfig in the same way.
func (p *Pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	if refusal, ok := errors.AsType[*httpserver.Refusal](err); errors.Is(err, storage.ErrNotFound) || ok && refusal.Status == http.StatusNotFound {
		p.notFound(w, r)

		return
	}

	p.Log.WithError(err).Error("showing a console page failed")
	p.problem(w, r, httpserver.RefusalOf(err).Status, "Not available", textUnavailable)
}
