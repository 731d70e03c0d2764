package console

import (
	"net/http"
	"time"

	"github.com/environment-broker/environment-broker/broker/console/views"
	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/httpserver"
)

const (
	// verifyLimit is the maximum duration of a verification. verifyPage is the number of records that it reads at once.
	verifyLimit = 5 * time.Second
	verifyPage  = 1000
)

// verification verifies the hash chain of the audit log for at most verifyLimit. A replica serves only one verification at a
// time.
func (c *console) verification(r *http.Request) (result, error) {
	if !c.verifying.TryLock() {
		return result{}, &httpserver.Refusal{
			Status: http.StatusTooManyRequests, Description: "Another verification is running. Try again later.", RetryAfter: verifyLimit,
		}
	}
	defer c.verifying.Unlock()

	begun := c.API.Clock.Now()
	verifier := chain.NewVerifier(chain.Options{Now: begun, MaxUnchained: chain.DefaultMaxUnchained})
	shown := views.Verification{}

	var head *chain.Head

	for position := ""; !shown.Complete && c.API.Clock.Since(begun) < verifyLimit; {
		page, err := c.API.Entries.ChainPage(r.Context(), position, verifyPage)
		if err != nil {
			return result{}, err
		}

		if head == nil {
			head = &page.Head
		}

		for _, record := range page.Records {
			verifier.Add(record)
		}

		for _, row := range page.Unchained {
			verifier.AddUnchained(row)
		}

		position, shown.Complete = page.Next, page.Next == ""
	}

	report := verifier.Partial()
	if shown.Complete {
		report = verifier.Finish(*head)
	}

	shown.Records, shown.Head, shown.Took = report.Records, report.Head.Hash, c.API.Clock.Since(begun)
	for _, problem := range report.Problems {
		shown.Problems = append(shown.Problems, problem.Text())
	}

	return result{page: views.Page{Title: "Verification of the audit log", Section: "/console/audit", Body: views.VerificationPage(shown)}}, nil
}
