package operator

import (
	"cmp"
	"net/http"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/broker/jobs"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
)

const (
	textJobOrder   = `The body is invalid. Send {"dryRun": true}, or {"reason": "…"} and optionally "confirm", as JSON.`
	textJobConfirm = "confirm must not be negative."
)

// ListJobs returns the jobs with the results of their newest runs.
func (a *API) ListJobs(r *http.Request) (httpserver.Response, error) {
	statuses, err := a.Jobs.List(r.Context())
	if err != nil {
		return httpserver.Response{}, err
	}

	list := operatorapi.JobList{Data: []operatorapi.Job{}}

	for _, status := range statuses {
		shown := operatorapi.Job{
			Name: status.Job.Name, Description: status.Job.Description, Items: status.Job.Items, Every: status.Job.Every.String(),
			Daily: status.Job.DailyText(), Limit: status.Job.Limit,
		}
		if status.Last != nil {
			shown.LastRun = jobRun(*status.Last)
		}

		list.Data = append(list.Data, shown)
	}

	return httpserver.OK(list), nil
}

// RunJob runs a job now or, for a dry run, returns the items that are due. Runs and errors are logged; successful dry runs are
// not.
func (a *API) RunJob(r *http.Request) (httpserver.Response, error) {
	var wanted operatorapi.JobOrder

	name, err := operatorserver.Segment(r, "name")
	if err == nil {
		err = operatorserver.ReadStrictly(r.Body, &wanted, textJobOrder)
	}

	if err == nil && wanted.Confirm < 0 {
		err = operatorserver.Invalid(textJobConfirm)
	}

	if err == nil && !wanted.DryRun {
		wanted.Reason, err = operatorserver.CheckReason(wanted.Reason)
	}

	if err != nil {
		return httpserver.Response{}, err
	}

	by := cmp.Or(auth.FromContext(r.Context()).Name, operatorserver.Anonymous)
	result, err := a.Jobs.Run(r.Context(), jobs.Order{
		Name: name, DryRun: wanted.DryRun, Confirm: wanted.Confirm, Reason: "by " + by + ": " + wanted.Reason, By: by,
	})

	line := a.Log.WithFields(logrus.Fields{logging.User: by, "job": name, logging.Reason: wanted.Reason})
	if err != nil {
		line.WithError(err).Warn("audit: job not run")

		return httpserver.Response{}, err
	}

	if !wanted.DryRun {
		line.Infof("audit: job run: %d of %d %s", result.Changed, result.Due, "items changed")
	}

	return httpserver.OK(jobRun(result)), nil
}

func jobRun(result jobs.Result) operatorapi.JobRun {
	return operatorapi.JobRun{
		StartedAt: result.StartedAt, FinishedAt: result.FinishedAt, By: result.By, Due: result.Due, Changed: result.Changed,
		Unchanged: result.Unchanged, Failed: result.Failed, Left: result.Left(), Held: result.Held, Errors: result.Errors, Items: result.IDs,
		Protected: result.Protected, ProtectedItems: result.ProtectedIDs, Protection: result.Protection,
	}
}
