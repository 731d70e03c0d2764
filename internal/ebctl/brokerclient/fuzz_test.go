package brokerclient

import (
	"net/http"
	"testing"
)

// FuzzAnswerError decodes arbitrary error responses. The error has a text, whatever the body is.
func FuzzAnswerError(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", `{"error":"a","description":"b"}`, `{"error":1}`, "<html>", `{"description":"\u001b[31m"}`} {
		f.Add([]byte(seed), http.StatusBadGateway)
	}

	f.Fuzz(func(t *testing.T, body []byte, status int) {
		failed := (&Client{}).answerError(&http.Response{StatusCode: status, Header: http.Header{}}, body)
		if failed.Error() == "" {
			t.Errorf("%d %q has no text", status, body)
		}
	})
}
