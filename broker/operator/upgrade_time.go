package operator

import (
	"errors"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage"
)

const textUpgradeTime = `The body is invalid. Send {"time": "2030-01-02T22:00:00Z"} as JSON.`

// ChooseUpgradeTime sets, on behalf of an instance's owner, when the instance's pending upgrade starts. Only upgrades with a
// deadline permit this.
func (a *API) ChooseUpgradeTime(r *http.Request) (httpserver.Response, error) {
	id, wanted, err := readChange[operatorapi.UpgradeTime](r, textUpgradeTime)
	if err == nil && wanted.Time.IsZero() {
		err = operatorserver.Invalid(textUpgradeTime)
	}

	if err != nil {
		return httpserver.Response{}, err
	}

	if _, err := a.Instances.Get(r.Context(), a.DB.Reader(), id); errors.Is(err, storage.ErrNotFound) {
		return httpserver.Response{}, operatorserver.NotFound("The instance does not exist.")
	} else if err != nil {
		return httpserver.Response{}, err
	}

	wanted.Time = wanted.Time.UTC()

	if err := a.Orchestrator.ChooseTime(r.Context(), id, wanted.Time); err != nil {
		return httpserver.Response{}, err
	}

	return httpserver.OK(wanted), nil
}
