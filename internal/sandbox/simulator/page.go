package simulator

import (
	"encoding/json"
	"html/template"
	"net/http"
)

// System is a simulated system that the page at /simulators shows.
type System interface {
	http.Handler
	Name() string
	// Holds describes the objects in the system, without secrets.
	Holds() []string
	Calls() []Call
	Faults() []Fault
	Inject(faults ...Fault)
	Reset()
}

// maxFault is the maximum size, in bytes, of the body of a request that injects a fault.
const maxFault = 64 << 10

// NewHandler serves each system below /NAME/ and these pages:
//
//   - GET /simulators: the objects, the latest calls and the faults of all systems;
//   - POST /simulators/NAME/faults: inject a Fault, as JSON;
//   - DELETE /simulators/NAME/faults: remove all faults of the system.
func NewHandler(systems ...System) http.Handler {
	mux := http.NewServeMux()

	for _, system := range systems {
		mux.Handle("/"+system.Name()+"/", http.StripPrefix("/"+system.Name(), system))
		mux.HandleFunc("POST /simulators/"+system.Name()+"/faults", func(w http.ResponseWriter, r *http.Request) {
			var fault Fault

			decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxFault))
			decoder.DisallowUnknownFields()

			if err := decoder.Decode(&fault); err != nil {
				http.Error(w, "The body must be a fault as JSON, such as {\"status\": 503, \"times\": 3}.", http.StatusBadRequest)

				return
			}

			system.Inject(fault)
			w.WriteHeader(http.StatusNoContent)
		})
		mux.HandleFunc("DELETE /simulators/"+system.Name()+"/faults", func(w http.ResponseWriter, _ *http.Request) {
			system.Reset()
			w.WriteHeader(http.StatusNoContent)
		})
	}

	mux.HandleFunc("GET /simulators", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_ = page().Execute(w, systems)
	})

	return mux
}

// page returns the HTML template of /simulators, which escapes all values.
func page() *template.Template {
	return template.Must(template.New("simulators").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Simulated systems</title>
<style>body{font:14px sans-serif;margin:2em}td,th{padding:2px 12px 2px 0;text-align:left}</style></head><body>
<h1>Simulated systems</h1>
<p>Inject a fault: <code>curl -d '{"status": 503, "times": 3}' ADDRESS/simulators/NAME/faults</code>. Fields: operation, status, retryAfter
(seconds), body, unsent, lost, delay (nanoseconds), times (-1: all calls). Remove all faults of a system: <code>curl -X DELETE</code>.</p>
{{range .}}<h2>{{.Name}}</h2>
<h3>Objects</h3><ul>{{range .Holds}}<li>{{.}}</li>{{else}}<li>none</li>{{end}}</ul>
<h3>Faults</h3><ul>{{range .Faults}}<li>{{or .Operation "every call"}}: {{if .Status}}status {{.Status}}{{else if .Unsent}}unsent{{else if .Lost}}response lost{{else if .Body}}unexpected body{{else}}delay {{.Delay}}{{end}}, {{.Times}} calls left</li>{{else}}<li>none</li>{{end}}</ul>
<h3>Last calls</h3><table><tr><th>time</th><th>operation</th><th>call</th><th>status</th></tr>
{{range .Calls}}<tr><td>{{.At.UTC.Format "15:04:05.000"}}</td><td>{{.Operation}}</td><td>{{.Method}} {{.Path}}</td><td>{{if .Status}}{{.Status}}{{else}}broken{{end}}</td></tr>
{{end}}</table>
{{end}}</body></html>
`))
}
