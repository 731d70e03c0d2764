package views

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/timetext"
	"github.com/environment-broker/environment-broker/process"
)

// Page is a page with the frame of the console.
type Page struct {
	// Title is the title of the window. Unless Body contains a heading, it is also the heading.
	Title string
	// Section is the path of the navigation entry that is highlighted for the page. It is empty if there is none.
	Section string
	Shell   Shell
	// Live is the URL of the server-sent events that refresh the page. It is empty if the page does not refresh itself.
	Live string
	Body templ.Component
}

// Shell contains the data for the frame of a page: the header with the navigation, and the footer.
type Shell struct {
	// User is the name of the client, or empty if there is no authentication.
	User string
	// CanLogOut reports whether the page offers a logout.
	CanLogOut bool
	// Sections are the navigation entries that the client may use.
	Sections []Section
	// Theme is light or dark, or empty to follow the setting of the browser.
	Theme string
	// Version is the version of the broker.
	Version string
}

// Section is an entry of the navigation.
type Section struct{ Name, Path string }

// ThemeCookie is the name of the cookie with the theme.
const ThemeCookie = "console-theme"

// Theme returns the theme in the request's cookie, or an empty string if there is no valid one.
func Theme(r *http.Request) string {
	cookie, err := r.Cookie(ThemeCookie)
	if err != nil || cookie.Value != "light" && cookie.Value != "dark" {
		return ""
	}

	return cookie.Value
}

// Render writes a page with the given HTTP status.
func Render(w http.ResponseWriter, r *http.Request, status int, page Page) {
	w.Header().Set("Cache-Control", "no-store")
	templ.Handler(Layout(page), templ.WithStatus(status)).ServeHTTP(w, r)
}

// The paths of pages. They escape IDs, which may contain any characters.
func instancePath(id string) string      { return "/console/instances/" + url.PathEscape(id) }
func orchestrationPath(id string) string { return "/console/orchestrations/" + url.PathEscape(id) }
func operationPath(id string) string     { return "/console/operations/" + url.PathEscape(id) }

// tone returns the CSS class for the color of a state: ok, busy, warn, bad or idle.
func tone(state string) string {
	switch state {
	case "succeeded", "active", "ready", "closed", "free", "done", "available", "finished", "installed", "Unpacked":
		return "ok"
	case "failed", "open", "dirty", "expired", "orphaned", "unhealthy", "Failing":
		return "bad"
	case "canceled", "canceling", "suspended", "half-open", "gated", "paused", "retrying", "not completed", "skipped", "releasing":
		return "warn"
	case "pending", "planned", "deleted", "left out", "":
		return "idle"
	default:
		return "busy"
	}
}

// moment formats a time for the datetime attribute.
func moment(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// exact formats a time for display, in UTC.
func exact(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") }

// relative describes how long ago or how far ahead a time is.
func relative(at, now time.Time) string {
	if at.After(now) {
		return "in " + timetext.Duration(at.Sub(now))
	}

	return timetext.Duration(now.Sub(at)) + " ago"
}

// duration formats a duration. It does not round durations below a second to 0, because many steps are that short.
func duration(d time.Duration) string {
	if d > 0 && d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}

	return timetext.Duration(d)
}

// seconds formats a latency that is given in seconds.
func seconds(value float64) string {
	if value < 1 {
		return fmt.Sprintf("%.0f ms", value*1000)
	}

	return fmt.Sprintf("%.1f s", value)
}

// unfinished reports whether an operation has not ended.
func unfinished(operation operatorapi.Operation) bool {
	return !process.State(operation.State).Terminal()
}

// command splits a sentence of advice into its text and the ebctl command at its end, if any.
func command(sentence string) (text, command string) {
	text, command, found := strings.Cut(sentence, ": ebctl ")
	if !found {
		return sentence, ""
	}

	return text + ":", "ebctl " + command
}

// or returns the string, or a dash if the string is empty.
func or(text string) string {
	if text == "" {
		return "–"
	}

	return text
}

// labelsOf returns labels in the form name=value, sorted.
func labelsOf(labels map[string]string) []string {
	found := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		found = append(found, name+"="+labels[name])
	}

	return found
}
