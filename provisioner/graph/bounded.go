package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// bounded limits the body of a request to maxBody. gqlgen would report a longer body as a failed operation with status 200, which
// proxies and clients without GraphQL cannot detect.
func bounded(next http.Handler, present graphql.ErrorPresenterFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))

		var tooLong *http.MaxBytesError

		switch {
		case errors.As(err, &tooLong):
			refuse(w, http.StatusRequestEntityTooLarge, present(r.Context(),
				failure.New(failure.Invalid, "the request has more than %d bytes: send less, or spread it over several requests", maxBody)))
		case err != nil:
			refuse(w, http.StatusBadRequest, present(r.Context(), failure.Wrap(failure.Invalid, err, "the request is incomplete")))
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		}
	})
}

// refuse answers a request in place of gqlgen, in the same form.
func refuse(w http.ResponseWriter, status int, problem *gqlerror.Error) {
	text, err := json.Marshal(graphql.Response{Errors: gqlerror.List{problem}})
	if err != nil {
		http.Error(w, textInternal, http.StatusInternalServerError)

		return
	}

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
