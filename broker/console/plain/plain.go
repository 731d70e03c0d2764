// Package plain contains the layout of the pages that are not only for operators: the login, the pages of tenants, and errors.
// They use neither the style sheet nor the scripts of the console for operators.
package plain

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strings"
)

// Assets is the path of the files that the layout uses. These files need no login.
const Assets = "/console/assets/plain/"

//go:embed layout.html
var layout string

//go:embed static
var static embed.FS

// Template is a page in this layout. The data that is passed to Write must have the field Title.
type Template struct{ parsed *template.Template }

// Parse parses the body of a page, a template of html/template. It panics if the body is malformed, because bodies are constants.
func Parse(body string) Template {
	return Template{template.Must(template.Must(template.New("page").Parse(layout)).New("body").Parse(body))}
}

// Write sends the page. html/template escapes all values of the data.
func (t Template) Write(w http.ResponseWriter, r *http.Request, status int, data any) {
	var page bytes.Buffer
	if err := t.parsed.ExecuteTemplate(&page, "page", data); err != nil {
		http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)

		return
	}

	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)

	if r.Method != http.MethodHead {
		_, _ = w.Write(page.Bytes()) // an error means that the client has disconnected
	}
}

// ServeAssets serves the files under Assets.
func ServeAssets(w http.ResponseWriter, r *http.Request) {
	name, _ := strings.CutPrefix(r.URL.Path, Assets)

	content, err := static.ReadFile("static/" + name)
	if err != nil {
		http.NotFound(w, r)

		return
	}

	media := "text/css; charset=utf-8"
	if strings.HasSuffix(name, ".js") {
		media = "text/javascript; charset=utf-8"
	}

	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(content) //nolint:gosec // a file that is part of the binary; an error means that the client has disconnected
}
