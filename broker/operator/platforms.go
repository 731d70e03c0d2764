package operator

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

const (
	// maxShares is the maximum number of platforms that an instance can be shared with.
	maxShares = 20

	textPlatformChange = `The body is invalid. Send {"platform": "…", "reason": "…"} as JSON.`
	textIsOwner        = "The platform owns the instance. Move the instance to another platform instead."
	textTooManyShares  = "The instance is already shared with %d platforms, which is the limit. Revoke a share first."
	textExcluded       = "The regions or tenants of platform %s exclude the instance, whose region is %s and whose account is %s."
)

// ListPlatforms returns the platforms in this replica's configuration.
func (a *API) ListPlatforms(*http.Request) (httpserver.Response, error) {
	list := operatorapi.PlatformList{Data: []operatorapi.Platform{}}

	for _, platform := range a.platforms().List() {
		list.Data = append(list.Data, operatorapi.Platform{
			Name: platform.Name, Users: platform.Users, Claims: platform.Claims, Certificates: platform.Certificates,
			Regions: platform.Regions, Tenants: platform.Tenants,
		})
	}

	return httpserver.OK(list), nil
}

// GrantPlatform shares an instance with a platform.
func (a *API) GrantPlatform(r *http.Request) (httpserver.Response, error) {
	return a.changePlatforms(r, auditlog.ActionGrant, func(instance environment.Instance, name string) (environment.Instance, error) {
		if slices.Contains(instance.Platforms(), name) {
			return instance, nil
		}

		if len(instance.SharedWith) >= maxShares {
			return instance, operatorserver.Conflict(fmt.Sprintf(textTooManyShares, maxShares))
		}

		instance.SharedWith = append(slices.Clone(instance.SharedWith), name)

		return instance, a.checkPlatform(instance, name)
	})
}

// RevokePlatform stops sharing an instance with a platform. The platform may have been removed from the configuration.
func (a *API) RevokePlatform(r *http.Request) (httpserver.Response, error) {
	return a.changePlatforms(r, auditlog.ActionRevoke, func(instance environment.Instance, name string) (environment.Instance, error) {
		if name == instance.Platform {
			return instance, operatorserver.Conflict(textIsOwner)
		}

		instance.SharedWith = without(instance.SharedWith, name)

		return instance, nil
	})
}

// MovePlatform makes a platform the owner of an instance.
func (a *API) MovePlatform(r *http.Request) (httpserver.Response, error) {
	return a.changePlatforms(r, auditlog.ActionMove, func(instance environment.Instance, name string) (environment.Instance, error) {
		if name == instance.Platform {
			return instance, nil
		}

		instance.Platform, instance.SharedWith = name, without(instance.SharedWith, name)

		return instance, a.checkPlatform(instance, name)
	})
}

// without returns the names that differ from name, or nil if there are none.
func without(names []string, name string) []string {
	var left []string

	for _, other := range names {
		if other != name {
			left = append(left, other)
		}
	}

	return left
}

// platforms returns the current platforms, which are empty if none are configured.
func (a *API) platforms() auth.Platforms {
	if a.Platforms == nil {
		return auth.Platforms{}
	}

	return a.Platforms()
}

// checkPlatform rejects a platform that is not configured, or whose configured regions or tenants exclude the instance.
func (a *API) checkPlatform(instance environment.Instance, name string) error {
	platform, found := a.platforms().Find(name)

	switch {
	case !found:
		var names []string
		for _, configured := range a.platforms().List() {
			names = append(names, configured.Name)
		}

		return operatorserver.Unknown("platform", name, names)
	case !platform.AllowsRegion(instance.PlatformRegion), !platform.AllowsTenant(instance.GlobalAccountID):
		return operatorserver.Conflict(fmt.Sprintf(textExcluded, name, instance.PlatformRegion, instance.GlobalAccountID))
	default:
		return nil
	}
}

// changePlatforms changes the platforms of the instance that the request path names, and records the change in the audit log, in
// one transaction. If nothing changes, it records nothing.
func (a *API) changePlatforms(r *http.Request, action string,
	change func(instance environment.Instance, name string) (environment.Instance, error),
) (httpserver.Response, error) {
	id, wanted, err := readChange[operatorapi.PlatformChange](r, textPlatformChange)
	if err != nil {
		return httpserver.Response{}, err
	}

	reason, err := operatorserver.CheckReason(wanted.Reason)
	if err == nil && wanted.Platform == "" {
		err = operatorserver.Invalid("platform is missing.")
	}

	var changed environment.Instance
	if err == nil {
		changed, err = a.changeInstance(r.Context(), id, auditlog.Entry{Action: action, Reason: reason}, a.setPlatforms,
			func(instance environment.Instance) (environment.Instance, error) {
				return change(instance, wanted.Platform)
			})
	}

	line := a.Log.WithFields(logrus.Fields{
		logging.User: auth.FromContext(r.Context()).Name, logging.InstanceID: id, logging.Kind: action, logging.Reason: reason,
	})
	if err != nil {
		line.WithError(err).Warn("audit: platforms of an instance not changed")

		return httpserver.Response{}, err
	}

	line.Info("audit: platforms of an instance changed")

	return httpserver.OK(operatorapi.InstancePlatforms{
		InstanceID: changed.ID, Platform: changed.Platform, SharedWith: changed.SharedWith,
	}), nil
}

// setPlatforms stores the platforms of an instance in its row, in its unfinished operations, and in those of its bindings. If
// one of these operations deletes the instance, the new platforms see its result, and the previous ones do not.
func (a *API) setPlatforms(ctx context.Context, tx storage.Tx, instance environment.Instance) error {
	if err := a.Instances.SetPlatforms(ctx, tx, instance); err != nil {
		return err
	}

	keys, err := a.Bindings.Keys(ctx, tx, []string{instance.ID})
	if err != nil {
		return err
	}

	return a.Operations.SetVisibleTo(ctx, tx, append(keys, instance.ID), environment.VisibleTo(instance))
}
