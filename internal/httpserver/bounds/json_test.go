package bounds_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

// object returns a JSON object with the given number of fields.
func object(fields int) string {
	var text strings.Builder
	for i := range fields {
		fmt.Fprintf(&text, `,"field%d":null`, i)
	}

	return "{" + strings.TrimPrefix(text.String(), ",") + "}"
}

func TestJSON(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"Order":           {"an ordinary request", `{"a": {"b": [1, -2.5e3, true, null, "c:d"]}, "e": {"b": ""}}`, ""},
		"NotJSON":         {"syntax errors are left to the decoder", `}}]"\u00{"a":`, ""},
		"Unfinished":      {"an escape at the end", `{"a\`, ""},
		"Tokens":          {"the array and its elements are values", "[" + strings.Repeat("0,", bounds.MaxTokens-2) + "0]", ""},
		"ManyTokens":      {"one value too many", "[" + strings.Repeat("0,", bounds.MaxTokens-1) + "0]", "has more than 10000 values"},
		"ManyFields":      {"names count, too", object(bounds.MaxTokens / 2), "has more than 10000 values"},
		"ManyWords":       {"letters are values", strings.Repeat("X", bounds.MaxTokens+1), "has more than 10000 values"},
		"Depth":           {"nested arrays", strings.Repeat("[", 32) + strings.Repeat("]", 32), ""},
		"Deep":            {"one array too deep", strings.Repeat("[", 33), "more than 32 levels deep"},
		"DeepMixed":       {"objects and arrays", strings.Repeat(`{"a":[`, 17), "more than 32 levels deep"},
		"Wide":            {"arrays that have ended do not count", strings.Repeat("[],", 100), ""},
		"Number":          {"the range of 64-bit floating-point numbers", `[1e308, 1E-308, 1.7976931348623157e+308]`, ""},
		"HugeExponent":    {"exact arithmetic on this number takes seconds", `{"a":[1e999000]}`, "an exponent beyond 308"},
		"TinyExponent":    {"a small number costs the same", `1E-309`, "an exponent beyond 308"},
		"OverflowingOne":  {"the exponent has more than 64 bits", `1e99999999999999999999`, "an exponent beyond 308"},
		"LongNumber":      {"many digits", strings.Repeat("9", 65), "a number longer than 64 characters"},
		"LongName":        {"a name of 257 bytes", `{"` + strings.Repeat("n", 257) + `":1}`, "longer than 256 bytes"},
		"LongestName":     {"a name of 256 bytes", `{"` + strings.Repeat("n", 256) + `":1}`, ""},
		"LongText":        {"texts have no limit", `["` + strings.Repeat("n", 1000) + `"]`, ""},
		"Duplicate":       {"decoders disagree on repeated fields", `{"a":1,"b":{"a":1},"a":2}`, `the field "a" more than once`},
		"EscapedTwice":    {"names are compared after decoding", `{"a":1,"\u0061" :2}`, `the field "a" more than once`},
		"DuplicateInMany": {"an object with many fields", strings.TrimSuffix(object(40), "}") + `,"field39":1}`, `the field "field39" more than once`},
		"QuotedName":      {"errors quote 50 characters", `{"` + strings.Repeat("n", 200) + `":1,"` + strings.Repeat("n", 200) + `":1}`, "nnn…nnn"},
	}

	for name, test := range cases {
		err := bounds.JSON("The body", []byte(test.text))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %s: got %v", name, test.reason, err)
		}

		if err != nil && (!failure.Is(err, failure.Invalid) || len(err.Error()) > 200) {
			t.Errorf("%s: the error must be short and of kind invalid, got %v", name, err)
		}
	}
}

// tokensOf counts the tokens of a JSON text with encoding/json. It returns false if the text is not JSON.
func tokensOf(text []byte) (int, bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	for count := 0; ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return count, json.Valid(text)
		}

		if err != nil {
			return 0, false
		}

		if token != json.Delim('}') && token != json.Delim(']') {
			count++
		}
	}
}

// FuzzJSON checks that encoding/json can decode each accepted text and finds the same number of values, and that the count of any
// other text does not exceed its length.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a": {"b": [1, -2.5e3, true, null, "c:d"]}}`, `{"a":1,"\u0061":2}`, `[1e999]`, `{"a\`, `"\\"`, `{"\"":"\\",":":":"}`, `[[[]]]`, "\xff",
		`1e`, `--1`, `{"a" : 1}`, `"a":1`, `[}`, strings.Repeat("[", 40), object(20), `{"\ud800":1,"\udfff":1}`,
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		err := bounds.JSON("The body", text)

		want, valid := tokensOf(text)
		if !valid || err != nil {
			if got := bounds.Tokens(text); got > len(text) {
				t.Errorf("%d values in %d bytes", got, len(text))
			}

			return
		}

		if got := bounds.Tokens(text); got != want {
			t.Errorf("counted %d values, encoding/json has %d: %q", got, want, text)
		}

		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); !ok || !strings.HasPrefix(mismatch.Value, "number") {
				t.Errorf("an accepted text must be decodable: %v: %q", err, text)
			}
		}
	})
}
