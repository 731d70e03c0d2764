package operator

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/labels"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

const (
	textLabelChange = `The body is invalid. Send {"set": {"name": "value"}, "remove": ["name"]} as JSON.`
	textNoLabels    = "The body has neither set nor remove."
	textBothLabels  = "The label %s is in both set and remove."
	textTooManySet  = "An instance can have at most %d labels."
)

// LabelInstance sets and removes labels of an instance.
func (a *API) LabelInstance(r *http.Request) (httpserver.Response, error) {
	id, wanted, err := readChange[operatorapi.LabelChange](r, textLabelChange)
	if err != nil {
		return httpserver.Response{}, err
	}

	if err := checkLabels(wanted); err != nil {
		return httpserver.Response{}, err
	}

	stored, err := a.storeLabels(r.Context(), id, wanted)
	line := a.Log.WithFields(logrus.Fields{logging.User: auth.FromContext(r.Context()).Name, logging.InstanceID: id})

	if err != nil {
		line.WithError(err).Warn("audit: labels of an instance not changed")

		return httpserver.Response{}, err
	}

	line.Info("audit: labels of an instance changed")

	return httpserver.OK(operatorapi.InstanceLabels{InstanceID: id, Labels: stored}), nil
}

// checkLabels rejects an empty change, labels with an invalid name or value, and labels that the change both sets and removes.
func checkLabels(wanted operatorapi.LabelChange) error {
	if len(wanted.Set)+len(wanted.Remove) == 0 {
		return operatorserver.Invalid(textNoLabels)
	}

	for name, value := range wanted.Set {
		if err := labels.Check(name, value); err != nil {
			return err //nolint:wrapcheck // carries a failure.Kind
		}

		if slices.Contains(wanted.Remove, name) {
			return operatorserver.Invalid(fmt.Sprintf(textBothLabels, name))
		}
	}

	return nil
}

// storeLabels changes the labels of an instance, and records the change in the audit log, in one transaction. If nothing changes, it
// records nothing. It returns all labels of the instance.
func (a *API) storeLabels(ctx context.Context, id string, wanted operatorapi.LabelChange) (map[string]string, error) {
	changed := map[string]string{}

	err := a.locked(ctx, id, func(tx storage.Tx) error {
		found, err := a.Instances.Labels(ctx, tx, id)
		if err != nil {
			return err
		}

		before := found[id]
		changed = map[string]string{}
		maps.Copy(changed, before)
		maps.Copy(changed, wanted.Set)

		for _, name := range wanted.Remove {
			delete(changed, name)
		}

		switch {
		case len(changed) > labels.Max:
			return operatorserver.Conflict(fmt.Sprintf(textTooManySet, labels.Max))
		case maps.Equal(changed, before):
			return nil
		}

		if err := a.Instances.SetLabels(ctx, tx, id, changed); err != nil {
			return err
		}

		return a.Recorder.Record(ctx, tx, auditlog.Entry{
			Action: auditlog.ActionLabel, InstanceID: id, Status: http.StatusOK,
			Before: auditlog.Fields{"labels": before}, After: auditlog.Fields{"labels": changed},
		})
	})

	return changed, err
}
