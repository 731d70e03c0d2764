package operator

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/broker/adopt"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/objectdiff"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
)

const textAdoption = `The body is invalid. Send {"account": "…", "dryRun": true} as JSON. See /openapi.yaml for optional fields.`

// maxAdministrators is the maximum number of administrators in a request to adopt a Shoot. maxText is the maximum length of each
// string in the request, in bytes.
const (
	maxAdministrators = 100
	maxText           = 255
)

// ShootAdopter turns Shoots into instances. Errors carry a failure.Kind.
type ShootAdopter interface {
	Adopt(ctx context.Context, order adopt.ShootOrder) (adopt.ShootResult, error)
}

// AdoptShoot turns a Shoot into an instance, or shows the result in a dry run.
func (a *API) AdoptShoot(r *http.Request) (httpserver.Response, error) {
	name, err := operatorserver.Segment(r, "shoot_name")
	if err != nil {
		return httpserver.Response{}, err
	}

	var wanted operatorapi.ShootAdoption
	if err := operatorserver.ReadStrictly(r.Body, &wanted, textAdoption); err != nil {
		return httpserver.Response{}, err
	}

	order := adopt.ShootOrder{
		ShootName: name, Account: wanted.Account, SubAccount: wanted.Subaccount, InstanceID: wanted.InstanceID, Plan: wanted.Plan, Name: wanted.Name,
		User: wanted.User, Administrators: wanted.Administrators, Platform: cmp.Or(wanted.Platform, a.onlyPlatform()),
		PlatformRegion: cmp.Or(wanted.PlatformRegion, a.DefaultRegion), CredentialsBinding: wanted.CredentialsBinding,
		Generation: wanted.Generation, DryRun: wanted.DryRun,
	}
	if err := a.checkAdoption(order); err != nil {
		return httpserver.Response{}, err
	}

	line := a.Log.WithFields(logrus.Fields{
		logging.User: cmp.Or(auth.FromContext(r.Context()).Name, operatorserver.Anonymous), logging.Shoot: name,
	})

	result, err := a.Shoots.Adopt(r.Context(), order)
	if err != nil {
		line.WithError(err).Warn("audit: Shoot not adopted")

		return httpserver.Response{}, err
	}

	if !order.DryRun {
		line.WithField(logging.InstanceID, result.Instance.ID).Info("audit: Shoot adopted")
	}

	httpserver.Note(r.Context(), logging.InstanceID, result.Instance.ID)

	return httpserver.OK(operatorapi.AdoptedShoot{
		InstanceID: result.Instance.ID, RuntimeID: result.Instance.RuntimeID, ShootName: result.Instance.ShootName, Plan: result.Instance.PlanName,
		Provider: result.Instance.Provider, Region: result.Instance.Region, DryRun: order.DryRun, Generation: result.Generation, Earlier: result.Earlier,
		ShootChanges: append([]objectdiff.Change{}, result.ShootChanges...), OrderChanges: append([]objectdiff.Change{}, result.OrderChanges...),
		NotInOrder: append([]string{}, result.NotInOrder...),
	}), nil
}

// onlyPlatform returns the name of the platform if there is only one, and otherwise an empty string.
func (a *API) onlyPlatform() string {
	if all := a.platforms().List(); len(all) == 1 {
		return all[0].Name
	}

	return ""
}

// checkAdoption rejects an order if a field is missing, invalid or too long, or if the platform could not reach the instance.
func (a *API) checkAdoption(order adopt.ShootOrder) error {
	switch reasons := validation.IsDNS1123Label(order.ShootName); {
	case len(reasons) > 0:
		return operatorserver.Invalid(fmt.Sprintf("The name of the Shoot is invalid: %s.", reasons[0]))
	case order.Account == "":
		return operatorserver.Invalid("account is missing.")
	case order.Generation < 0:
		return operatorserver.Invalid("generation must not be negative.")
	case len(order.Administrators) > maxAdministrators:
		return operatorserver.Invalid(fmt.Sprintf("administrators has more than %d entries.", maxAdministrators))
	case slices.Contains(order.Administrators, ""):
		return operatorserver.Invalid("administrators has an empty entry.")
	}

	for name, texts := range map[string][]string{
		"account": {order.Account}, "subaccount": {order.SubAccount}, "instanceID": {order.InstanceID}, "plan": {order.Plan}, "name": {order.Name},
		"user": {order.User}, "platformRegion": {order.PlatformRegion}, "credentialsBinding": {order.CredentialsBinding}, "an entry of administrators": order.Administrators,
	} {
		if slices.ContainsFunc(texts, func(text string) bool { return len(text) > maxText }) {
			return operatorserver.Invalid(fmt.Sprintf("%s must have at most %d bytes.", name, maxText))
		}
	}

	if len(a.platforms().List()) == 0 {
		return nil
	}

	return a.checkPlatform(environment.Instance{PlatformRegion: order.PlatformRegion, GlobalAccountID: order.Account}, order.Platform)
}
