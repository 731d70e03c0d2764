package operator

import "github.com/environment-broker/environment-broker/internal/operatorapi"

// system tells how the system of the component stands, or nothing when it is none that is called.
func (a *api) system(component string) *operatorapi.System {
	for _, system := range a.Systems {
		status := system.Status()
		if status.Component != component {
			continue
		}

		return &operatorapi.System{
			Name: status.System, State: string(status.State), CallsInFlight: status.InFlight, CallsLimit: status.Calls,
			Failures: status.Failures, FailingSince: moment(status.FailingSince), LastFault: status.LastFault,
			NextTry: moment(status.NextTry),
		}
	}

	return nil
}
